//! OpenVINO's intermediate representation, version 11: layers and edges as XML, and constants as offsets
//! into one buffer.

use std::fmt::Write;

/// A model with one input of f32 and one of u8.
pub(super) const PROBE: &str = concat!(
    r#"<net name="probe" version="11"><layers>"#,
    r#"<layer id="0" name="a" type="Parameter" version="opset1"><data shape="1" element_type="f32"/>"#,
    r#"<output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>"#,
    r#"<layer id="1" name="b" type="Parameter" version="opset1"><data shape="1" element_type="u8"/>"#,
    r#"<output><port id="0" precision="U8"><dim>1</dim></port></output></layer>"#,
    r#"<layer id="2" name="c" type="Result" version="opset1">"#,
    r#"<input><port id="0" precision="FP32"><dim>1</dim></port></input></layer>"#,
    r#"<layer id="3" name="d" type="Result" version="opset1">"#,
    r#"<input><port id="0" precision="U8"><dim>1</dim></port></input></layer></layers><edges>"#,
    r#"<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>"#,
    r#"<edge from-layer="1" from-port="0" to-layer="3" to-port="0"/></edges></net>"#,
);

/// Type of the elements of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    F32,
    F16,
    Bf16,
    I64,
    U8,
    /// Two to a byte, the first in the low half.
    U4,
}

impl Element {
    /// Names as the type of a constant and as the precision of a port.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Element::F32 => ("f32", "FP32"),
            Element::F16 => ("f16", "FP16"),
            Element::Bf16 => ("bf16", "BF16"),
            Element::I64 => ("i64", "I64"),
            Element::U8 => ("u8", "U8"),
            Element::U4 => ("u4", "U4"),
        }
    }

    /// Bytes of that many elements.
    pub(super) fn bytes(self, count: usize) -> usize {
        match self {
            Element::I64 => 8 * count,
            Element::F32 => 4 * count,
            Element::F16 | Element::Bf16 => 2 * count,
            Element::U8 => count,
            Element::U4 => count.div_ceil(2),
        }
    }
}

/// A value: the output of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    layer: usize,
    port: usize,
    pub(super) element: Element,
    pub(super) dims: Vec<usize>,
}

/// The kind of a layer: its type, the operation set that introduced it, and its attributes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind<'a> {
    pub(super) name: &'a str,
    pub(super) opset: u8,
    pub(super) attributes: &'a str,
}

impl<'a> Kind<'a> {
    /// A layer of the first operation set.
    pub(super) const fn new(name: &'a str, attributes: &'a str) -> Kind<'a> {
        Kind { name, opset: 1, attributes }
    }
}

/// A model under construction.
#[derive(Debug, Default)]
pub(super) struct Ir {
    layers: String,
    edges: String,
    count: usize,
}

impl Ir {
    /// Adds a layer and returns its output.
    pub(super) fn layer(
        &mut self,
        kind: Kind<'_>,
        inputs: &[&Value],
        element: Element,
        dims: Vec<usize>,
    ) -> Value {
        let port = inputs.len();
        self.open(kind, inputs);
        let value = Value { layer: self.count, port, element, dims };
        self.layers.push_str("<output>");
        self.port(port, &value);
        self.layers.push_str("</output></layer>");
        self.count += 1;
        value
    }

    /// Adds an input of the model. Inputs are numbered in the order of these calls.
    pub(super) fn parameter(&mut self, dims: Vec<usize>) -> Value {
        let attributes = format!(r#"shape="{}" element_type="f32""#, list(&dims));
        self.layer(Kind::new("Parameter", &attributes), &[], Element::F32, dims)
    }

    /// Adds an output of the model. Outputs are numbered in the order of these calls.
    pub(super) fn result(&mut self, value: &Value) {
        self.open(Kind::new("Result", ""), &[value]);
        self.layers.push_str("</layer>");
        self.count += 1;
    }

    /// Adds a constant whose bytes begin at `offset`.
    pub(super) fn constant(&mut self, element: Element, dims: Vec<usize>, offset: usize) -> Value {
        let bytes = element.bytes(dims.iter().product());
        let attributes = format!(
            r#"element_type="{}" shape="{}" offset="{offset}" size="{bytes}""#,
            element.names().0,
            list(&dims)
        );
        self.layer(Kind::new("Const", &attributes), &[], element, dims)
    }

    /// The same values as f32.
    pub(super) fn float(&mut self, value: &Value) -> Value {
        if value.element == Element::F32 {
            return value.clone();
        }
        let kind = Kind::new("Convert", r#"destination_type="f32""#);
        self.layer(kind, &[value], Element::F32, value.dims.clone())
    }

    /// A layer that combines two values element by element. The second may have dimensions of 1, which are
    /// repeated.
    pub(super) fn binary(&mut self, name: &str, left: &Value, right: &Value) -> Value {
        let kind = Kind::new(name, r#"auto_broadcast="numpy""#);
        self.layer(kind, &[left, right], Element::F32, left.dims.clone())
    }

    /// The text of the model.
    pub(super) fn finish(self) -> String {
        let Ir { layers, edges, .. } = self;
        format!(
            r#"<net name="lapwing" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>"#
        )
    }

    fn open(&mut self, kind: Kind<'_>, inputs: &[&Value]) {
        let (id, Kind { name, opset, attributes }) = (self.count, kind);
        push(
            &mut self.layers,
            format_args!(r#"<layer id="{id}" name="n{id}" type="{name}" version="opset{opset}">"#),
        );
        if !attributes.is_empty() {
            push(&mut self.layers, format_args!("<data {attributes}/>"));
        }
        if inputs.is_empty() {
            return;
        }
        self.layers.push_str("<input>");
        for (to, value) in inputs.iter().enumerate() {
            self.port(to, value);
            let Value { layer, port, .. } = value;
            push(
                &mut self.edges,
                format_args!(
                    r#"<edge from-layer="{layer}" from-port="{port}" to-layer="{id}" to-port="{to}"/>"#
                ),
            );
        }
        self.layers.push_str("</input>");
    }

    fn port(&mut self, id: usize, value: &Value) {
        let precision = value.element.names().1;
        push(&mut self.layers, format_args!(r#"<port id="{id}" precision="{precision}">"#));
        for dim in &value.dims {
            push(&mut self.layers, format_args!("<dim>{dim}</dim>"));
        }
        self.layers.push_str("</port>");
    }
}

fn list(dims: &[usize]) -> String {
    dims.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

fn push(text: &mut String, what: std::fmt::Arguments<'_>) {
    // A string grows as needed.
    let _ = text.write_fmt(what);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_connected_by_their_numbers() {
        let mut ir = Ir::default();
        let x = ir.parameter(vec![2, 3]);
        let y = ir.binary("Add", &x, &x.clone());
        ir.result(&y);
        let text = ir.finish();
        for part in [
            r#"<layer id="0" name="n0" type="Parameter" version="opset1"><data shape="2,3" element_type="f32"/><output><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></output></layer>"#,
            r#"<edge from-layer="0" from-port="0" to-layer="1" to-port="1"/>"#,
            r#"<edge from-layer="1" from-port="2" to-layer="2" to-port="0"/>"#,
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
