"""Export a tiny network to ONNX: two layers for pictures of 8 x 8 pixels.

Run it in an environment with torch and onnx: `python write_onnx.py FILE`.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main(path):
    rng = np.random.default_rng(0)
    weight = rng.normal(0, 0.5, (3 * 8 * 8, 2)).astype(np.float32)
    weight[:64, 1] += 0.2  # red speaks for class 1
    bias = np.zeros(2, np.float32)
    nodes = [
        helper.make_node("Flatten", ["pictures"], ["flat"]),
        helper.make_node("Gemm", ["flat", "weight", "bias"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("pictures", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 2])],
        [
            numpy_helper.from_array(weight, "weight"),
            numpy_helper.from_array(bias, "bias"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
