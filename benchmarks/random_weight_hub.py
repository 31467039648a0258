"""Makes models of transformers with random weights, in the layout of the cache of Hugging Face's hub.

python benchmarks/random_weight_hub.py HUB TESTS (benchmarks/optimum_tests.py runs it)

The tests of optimum name small models on the hub whose weights are random. Where the hub is out of reach, models of
the same names and architectures, made from a configuration here, stand in for them; the tests stay unchanged.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers.models.auto import modeling_auto

#: Extents of every model, by each name that a configuration may have for them.
SMALL: dict[str, Any] = {
    **dict.fromkeys(
        ("hidden_size", "d_model", "n_embd", "dim", "embedding_size", "emb_dim", "word_embed_proj_dim"), 32
    ),
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layers", "n_layer", "encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("num_decoder_layers",), 2),
    **dict.fromkeys(("num_attention_heads", "num_heads", "n_heads", "n_head"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads",), 2),
    **dict.fromkeys(
        ("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "n_inner", "ffn_hidden_size"), 64
    ),
    **dict.fromkeys(("hidden_dim",), 64),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx"), 512),
    **dict.fromkeys(("head_dim", "d_kv"), 8),
    "vocab_size": 512,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "forced_eos_token_id": 2,
    "hidden_dropout_prob": 0.0,
}

#: What an architecture needs besides, by its model type.
BESIDES: dict[str, dict[str, Any]] = {
    "big_bird": {"attention_type": "original_full"},
    "bigbird_pegasus": {"attention_type": "original_full"},
    "gptj": {"rotary_dim": 4},
    "codegen": {"rotary_dim": 4},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 16},
    "convbert": {"num_groups": 1, "head_ratio": 2, "conv_kernel_size": 9},
    "mobilebert": {"true_hidden_size": 32, "intra_bottleneck_size": 32, "num_feedforward_networks": 2},
    "phi3": {"pad_token_id": 0},
    "gemma": {"num_key_value_heads": 1},
    "deberta-v2": {"relative_attention": True, "position_biased_input": False, "pos_att_type": ["p2c", "c2p"]},
    "deberta": {"relative_attention": True, "position_biased_input": False, "pos_att_type": ["p2c", "c2p"]},
    "nystromformer": {"num_landmarks": 8, "segment_means_seq_len": 8},
    "qwen3_moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    "mpt": {"attn_config": {"attn_impl": "torch"}},
    "t5": {"relative_attention_num_buckets": 8},
    "falcon": {"alibi": False, "multi_query": True},
    "deepseek_v3": {
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "moe_intermediate_size": 32,
        "kv_lora_rank": 16,
        "q_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 8,
        "first_k_dense_replace": 1,
        "num_key_value_heads": 4,
    },
    "gpt_oss": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "glm": {"pad_token_id": 0},
}
#: Like a model type, with something else in the configuration, by its name in the tests.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "falcon-alibi-True": ("falcon", {"alibi": True}),
    "gpt_bigcode-multi_query-False": ("gpt_bigcode", {"multi_query": False}),
    "xlm-qa": ("xlm", {}),
}
#: Model types whose models take text alone.
TEXT_KINDS = {
    *modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    *modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    *modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
} - {"gemma3", "perceiver", "layoutlm", "seamless_m4t", "git", "fuyu", "whisper", "speech_to_text", "encoder-decoder"}
#: Whose encoders tell two sentences apart.
WITH_TYPES = {
    "albert",
    "bert",
    "big_bird",
    "convbert",
    "deberta",
    "deberta-v2",
    "electra",
    "ibert",
    "mobilebert",
    "nystromformer",
    "rembert",
    "roformer",
    "squeezebert",
}
TEXTS = [
    "This is me",
    "Today is a nice day and I am longer",
    "This is a sample output",
    "My Name is Philipp and I live in Nuremberg.",
]


def tokenizer(names: list[str]) -> Any:
    """A byte-level tokenizer of at most 512 tokens that gives the inputs ``names``."""
    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<pad>", "<s>", "</s>", "<unk>", "<mask>"]
    made.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
        cls_token="<s>",
        sep_token="</s>",
        model_input_names=names,
        model_max_length=128,
    )


def configuration(kind: str, besides: dict[str, Any]) -> Any:
    """A small configuration of the model type ``kind``, with ``besides`` set."""
    cls = transformers.CONFIG_MAPPING[kind]
    known = set(inspect.signature(cls.__init__).parameters) | set(cls.attribute_map)
    common = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
    wanted = {name: value for name, value in SMALL.items() if name in known or name in common}
    return cls(**{**wanted, **BESIDES.get(kind, {}), **besides})


def put(hub: Path, repo: str, kind: str, besides: dict[str, Any]) -> None:
    """Put a model of ``kind`` below ``hub`` as ``repo``, with a tokenizer."""
    folder = hub / f"models--{repo.replace('/', '--')}"
    files = folder / "snapshots" / ("0" * 40)
    if (folder / "refs" / "main").exists():
        return
    torch.manual_seed(0)
    config = configuration(kind, besides)
    model = transformers.AutoModel.from_config(config).eval()
    model.save_pretrained(files)
    names = ["input_ids", "attention_mask"] + (["token_type_ids"] if kind in WITH_TYPES else [])
    tokenizer(names).save_pretrained(files)
    (folder / "refs").mkdir(parents=True, exist_ok=True)
    (folder / "refs" / "main").write_text("0" * 40)


def fill(hub: Path, repos: dict[str, str]) -> dict[str, str]:
    """Put the models of text of ``repos``, repositories by the tests' names; the errors of those that cannot be."""
    failed = {}
    for name, repo in repos.items():
        kind, besides = VARIANTS.get(name, (name, {}))
        if kind not in TEXT_KINDS:
            continue
        try:
            put(hub, repo, kind, besides)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return failed


def main() -> None:
    hub, tests = sys.argv[1:]
    sys.path.insert(0, tests)
    from testing_utils import MODEL_NAMES

    for name, error in fill(Path(hub), MODEL_NAMES).items():
        print(f"no model of {name}: {error}")


if __name__ == "__main__":
    main()
