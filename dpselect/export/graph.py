"""Build a graph of ONNX operators on float64, with named values."""

from importlib import import_module

import numpy as np

# versions of the operators and of the file format, which runtimes since 2023 support
OPSETS, FILE = {"": 18, "ai.onnx.ml": 3}, 8
NUMBERS, TEXT, INTEGERS = np.dtype(np.float64), np.dtype(object), np.dtype(np.int64)


class Graph:
    """Operators in execution order, with their constants."""

    def __init__(self):
        try:
            self.onnx = import_module("onnx")
        except ImportError as error:
            raise ImportError(
                'to_onnx needs onnx, which is not installed; run pip install "dpselect[onnx]".'
            ) from error
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []

    def input(self, name, n_columns, dtype=NUMBERS):
        """Return an input of n rows."""
        self.inputs.append(self._described(name, dtype, ["n", n_columns]))
        return name

    def output(self, name, value, shape, dtype=NUMBERS):
        """Make a value an output with a given name."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        self.outputs.append(self._described(name, dtype, shape))

    def withdrawn(self, name):
        """Remove an output, and return its value."""
        node = next(node for node in self.nodes if list(node.output) == [name])
        self.nodes.remove(node)
        self.outputs = [output for output in self.outputs if output.name != name]
        return node.input[0]

    def cast(self, value, dtype):
        """Return values of another type."""
        return self.Cast(value, to=self.onnx.helper.np_dtype_to_tensor_dtype(dtype))

    def cos(self, value):
        """Return cosines, as sines, whose float64 version more runtimes support."""
        return self.Sin(self.Add(value, np.float64(np.pi / 2)))

    def _described(self, name, dtype, shape):
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(dtype)
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)

    def __getattr__(self, operator):
        """Return a function ``(*values, **attributes)`` that adds an operator; arrays are constants."""
        if not operator[0].isupper():
            raise AttributeError(operator)

        def add(*values, **attributes):
            name = f"/{operator}{len(self.nodes)}"
            domain = "ai.onnx.ml" if operator == "LabelEncoder" else ""
            values = [v if isinstance(v, str) else self._constant(v) for v in values]
            node = self.onnx.helper.make_node(operator, values, [name], domain=domain, **attributes)
            self.nodes.append(node)
            return name

        return add

    def _constant(self, value):
        value = np.asarray(value)
        value = value.astype(np.float64) if value.dtype.kind == "f" else value
        name = f"/constant{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(value, name))
        return name

    def concatenated(self, values):
        """Concatenate columns."""
        return values[0] if len(values) == 1 else self.Concat(*values, axis=1)

    def between(self, value, low, high):
        """Return numbers clipped to columns of bounds; NaN stays NaN, and infinity becomes NaN."""
        clipped = self.Max(self.Min(value, np.float64(high)), np.float64(low))
        wrong = self.Or(self.IsNaN(value), self.IsInf(value))
        return self.Where(wrong, np.float64(np.nan), clipped)

    def clipped(self, rows, bounds):
        """Return rows that are scaled down to norms."""
        factor = np.ones((1, 1))
        axis, size = np.array([1]), self.Abs(rows)
        for norm, bound in bounds.items():
            unit = self.Max(self.ReduceMax(size, axis, keepdims=1), np.float64(bound))
            scaled = self.Div(size, unit)  # squares of long rows would overflow
            power = self.Mul(scaled, scaled) if norm == "l2" else scaled
            total = self.ReduceSum(power, axis, keepdims=1)
            length = self.Mul(unit, self.Sqrt(total) if norm == "l2" else total)
            factor = self.Min(factor, self.Div(np.float64(bound), length))
        return self.Mul(rows, factor)

    def model(self, name, **properties):
        """Return a checked ModelProto."""
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=FILE)
        helper.set_model_props(model, properties)
        self.onnx.checker.check_model(model, full_check=True)
        return model
