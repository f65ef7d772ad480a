"""The inferior olive in TensorFlow: jit_compile, 40 Euler steps per call in a loop, gather and segment sum, CPU."""
import os

import numpy as np

import olive
import peer

a = olive.options()
olive.use_one_thread()
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
try:
    import tensorflow as tf
except ImportError as e:
    peer.not_installed("tensorflow", e)
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
derivative = olive.DERIVATIVE[a.form]
dtype = tf.float64 if a.precision == "f64" else tf.float32


def make(state, src, tgt):
    apart = src is None
    cells = state.shape[1]
    if not apart:
        src, tgt = tf.constant(src, tf.int32), tf.constant(tgt, tf.int32)

    def gap(vd, src, tgt):
        if apart:
            return tf.zeros([], dtype)
        into = olive.junction(tf, tf.gather(vd, src) - tf.gather(vd, tgt))
        return tf.math.unsorted_segment_sum(into, tgt, cells)

    def step(s, src, tgt):
        new = derivative(tf, s if isinstance(s, tuple) else tf.unstack(s), gap(s[olive.VD], src, tgt))
        return s + olive.DT * tf.stack(new) if a.form == "study" else tuple(x + olive.DT * d for x, d in zip(s, new))

    @tf.function(jit_compile=True)
    def fused(s, *edges):
        edges = edges or (None, None)
        begin = (tf.constant(0), s)
        return tf.while_loop(lambda i, s: i < olive.FUSED, lambda i, s: (i + 1, step(s, *edges)), begin)[1]

    held = tf.constant(state, dtype) if a.form == "study" else tuple(tf.constant(x, dtype) for x in state)
    edges = () if apart else (src, tgt)
    fused(held, *edges)[olive.VS].numpy()                               # traces and compiles

    def advance(steps, fetch=True):
        nonlocal held
        for _ in range(steps // olive.FUSED):
            held = fused(held, *edges)
        held[olive.VS][0].numpy()                                       # waits
        return np.array([x.numpy().astype(np.float64) for x in held]) if fetch else None

    return advance


olive.measure(a, "tensorflow", tf.__version__, make)
