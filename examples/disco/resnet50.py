"""ResNet50: He, Zhang, Ren and Sun 2016, table 1, "50-layer".

Bottleneck blocks whose first convolution has the stride, as published, and projections where the
shape changes (option B). Batch norm normalizes with the statistics of the rank's own images; the
running averages, which only inference reads, are left out.
"""

import dataclasses

import jax
import jax.numpy as jnp

import layers


@dataclasses.dataclass(frozen=True)
class Dims:
    image: int  # height and width
    stem: int  # channels of the first convolution
    stages: tuple  # (blocks, channels) of each; a block has 4 times the channels as outputs
    classes: int
    batch: int  # images of a rank


PAPER = Dims(image=224, stem=64, stages=((3, 64), (4, 128), (6, 256), (3, 512)),
             classes=1000, batch=64)  # fmt: skip
SMALL = Dims(image=25, stem=7, stages=((1, 3), (2, 5)), classes=17, batch=2)

kExpansion = 4


def init(key, dims):
    keys = layers.split_forever(key)

    def convolution(window, inputs, channels):
        deviation = (2 / (window * window * inputs)) ** 0.5
        return {"weight": layers.draw(keys, window, window, inputs, channels, deviation=deviation),
                "norm": layers.init_norm(channels)}  # fmt: skip

    params = {"stem": convolution(7, 3, dims.stem), "stages": []}
    inputs = dims.stem
    for blocks, channels in dims.stages:
        stage = []
        for at in range(blocks):
            outputs = kExpansion * channels
            block = {"reduce": convolution(1, inputs, channels),
                     "middle": convolution(3, channels, channels),
                     "expand": convolution(1, channels, outputs)}  # fmt: skip
            if at == 0:
                block["project"] = convolution(1, inputs, outputs)
            stage.append(block)
            inputs = outputs
        params["stages"].append(stage)
    params["dense"] = layers.init_dense(keys, inputs, dims.classes, inputs**-0.5)
    return params


def batch_shapes(dims, n):
    return {"images": jax.ShapeDtypeStruct((n, dims.image, dims.image, 3), jnp.float32),
            "labels": jax.ShapeDtypeStruct((n,), jnp.int32)}  # fmt: skip


def convolve(params, x, stride=1):
    """Convolution without bias and batch norm: [n, height, width, inputs] to [..., channels]."""
    around = params["weight"].shape[0] // 2
    x = jax.lax.conv_general_dilated(x, params["weight"], (stride, stride), ((around, around),) * 2,
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))  # fmt: skip
    centred = x - x.mean((0, 1, 2))
    scaled = centred * jax.lax.rsqrt((centred**2).mean((0, 1, 2)) + 1e-5)
    return scaled * params["norm"]["scale"] + params["norm"]["shift"]


def bottleneck(params, x, stride):
    shortcut = convolve(params["project"], x, stride) if "project" in params else x
    x = jax.nn.relu(convolve(params["reduce"], x, stride))
    x = jax.nn.relu(convolve(params["middle"], x))
    return jax.nn.relu(convolve(params["expand"], x) + shortcut)


def loss(params, batch, dims):
    """The mean cross entropy; images [n, height, width, 3], labels [n]."""
    del dims
    x = jax.nn.relu(convolve(params["stem"], batch["images"], 2))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1),
                              ((0, 0), (1, 1), (1, 1), (0, 0)))  # fmt: skip
    for number, stage in enumerate(params["stages"]):
        for at, block in enumerate(stage):
            x = bottleneck(block, x, 2 if number > 0 and at == 0 else 1)
    logits = layers.dense(params["dense"], x.mean((1, 2)))
    return layers.cross_entropy(logits, batch["labels"])
