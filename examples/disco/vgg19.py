"""VGG19: Simonyan and Zisserman 2015, table 1, column E.

Convolutions of 3x3 with bias and ReLU, max pooling of 2x2 after each stage, three dense layers.
"""

import dataclasses

import jax
import jax.numpy as jnp

import layers


@dataclasses.dataclass(frozen=True)
class Dims:
    image: int  # height and width
    stages: tuple  # (convolutions, channels) of each
    dense: tuple  # outputs of the dense layers before the last
    classes: int
    batch: int  # images of a rank


PAPER = Dims(image=224, stages=((2, 64), (2, 128), (4, 256), (4, 512), (4, 512)),
             dense=(4096, 4096), classes=1000, batch=64)  # fmt: skip
SMALL = Dims(image=13, stages=((1, 5), (2, 7)), dense=(19, 11), classes=17, batch=2)


def init(key, dims):
    keys = layers.split_forever(key)
    stages, inputs, size = [], 3, dims.image
    for convolutions, channels in dims.stages:
        stage = []
        for _ in range(convolutions):
            deviation = (2 / (9 * inputs)) ** 0.5
            weight = layers.draw(keys, 3, 3, inputs, channels, deviation=deviation)
            stage.append({"weight": weight, "bias": jnp.zeros(channels)})
            inputs = channels
        stages.append(stage)
        size //= 2
    inputs *= size * size
    dense = []
    for outputs in (*dims.dense, dims.classes):
        dense.append(layers.init_dense(keys, inputs, outputs, (2 / inputs) ** 0.5))
        inputs = outputs
    return {"stages": stages, "dense": dense}


def batch_shapes(dims, n):
    return {"images": jax.ShapeDtypeStruct((n, dims.image, dims.image, 3), jnp.float32),
            "labels": jax.ShapeDtypeStruct((n,), jnp.int32)}  # fmt: skip


def loss(params, batch, dims):
    """The mean cross entropy; images [n, height, width, 3], labels [n]."""
    del dims
    x = batch["images"]
    for stage in params["stages"]:
        for convolution in stage:
            x = jax.lax.conv_general_dilated(
                x, convolution["weight"], window_strides=(1, 1), padding=((1, 1), (1, 1)),
                dimension_numbers=("NHWC", "HWIO", "NHWC")
            )  # fmt: skip
            x = jax.nn.relu(x + convolution["bias"])
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x.reshape(len(x), -1)
    for dense in params["dense"][:-1]:
        x = jax.nn.relu(layers.dense(dense, x))
    return layers.cross_entropy(layers.dense(params["dense"][-1], x), batch["labels"])
