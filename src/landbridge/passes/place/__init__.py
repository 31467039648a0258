"""Placement: moves every tensor to the vdevice and scope that was requested for it.

Tensors start in the global scope of vdevice 0. ``request_places`` records other placements as the attribute
``lb.place`` of @main; the pass applies it, inserts ``lb.to_vdevice`` where a tensor crosses, and gives every PrimFunc
the memory spaces that it is called with.
"""

from __future__ import annotations

from landbridge.ir.main_attributes import take_place_requests
from landbridge.ir.module import IRModule
from landbridge.passes.place.images import check_images
from landbridge.passes.place.mover import move, move_arguments, move_constants
from landbridge.passes.place.requests import PlacedNode, Places, Requests, request_places
from landbridge.passes.place.spaces import match_spaces
from landbridge.passes.place.usable import check_usable
from landbridge.passes.registry import register_pass

__all__ = ["PlacedNode", "Places", "place", "request_places"]


@register_pass("place")
def place(module: IRModule) -> None:
    """Move what ``lb.place`` names to its vdevice and scope, with ``lb.to_vdevice`` at every crossing."""
    requests = Requests(take_place_requests(module.main))
    if requests.places:
        move_constants(module, requests.of_constant)
        move_arguments(module, requests.places)
        move(module, requests.of_node)
        check_usable(module, requests)
        check_images(module)
    match_spaces(module)
