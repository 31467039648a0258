import threading

import numpy as np

import landbridge as lb
from landbridge.vm import thread_pool
from landbridge.vm.code_image import load_image
from tests.vm import programs


def test_one_pool_for_each_number_of_threads():
    image = load_image(programs.code_image())
    assert thread_pool.pool_address(image, 1) == 0
    two, three = (thread_pool.pool_address(image, n) for n in (2, 3))
    assert two and three and two != three
    assert thread_pool.pool_address(image, 2) == two


def test_sessions_of_many_threads_share_a_pool():
    executable = programs.two_stages(1 << 12)
    failures = []

    def work(seed: int) -> None:
        a = np.random.default_rng(seed).standard_normal(1 << 12, dtype=np.float32)
        session = lb.Session(executable, num_threads=2)
        for _ in range(300):
            (y,) = session(a, a)
            if not np.array_equal(np.asarray(y), 4 * a):
                failures.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_sessions_share_code():
    executable = programs.add_weights()
    image = executable.modules[0].image
    first, second = lb.Session(executable, num_threads=1), lb.Session(executable, num_threads=1)
    assert load_image(image) is load_image(image)
    assert [first(np.zeros(64, np.float32))[0].shape, second(np.zeros(64, np.float32))[0].shape] == [(64,)] * 2
