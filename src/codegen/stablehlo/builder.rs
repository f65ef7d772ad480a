//! StableHLO as data: functions of typed tensors, checked operation by operation.
//!
//! In come requests for operations on values; out goes a [`Function`] in which every operation has operands of the types that it
//! takes and every value is used inside the block that defines it.
//! Never true here: an ill-typed operation is built. MLIR would accept it, and XLA would complain far from the cause, so it is
//! a bug of the compiler and panics where it is made.

use crate::step::OriginId;
use rustc_hash::FxHashMap as HashMap;
use std::fmt;

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Element {
    /// A truth value.
    Bool,
    /// A signed whole number of 32 bits.
    I32,
    /// A whole number from 0 of 32 bits.
    U32,
    /// A whole number from 0 of 64 bits.
    U64,
    /// A real number of 16 bits, the upper half of one of 32. Nothing is computed with it: it is converted from and to [`Element::F32`].
    Bf16,
    /// A real number of 32 bits.
    F32,
    /// A real number of 64 bits.
    F64,
}

impl Element {
    /// Its name in MLIR.
    pub fn name(self) -> &'static str {
        match self {
            Element::Bool => "i1",
            Element::I32 => "i32",
            Element::U32 => "ui32",
            Element::U64 => "ui64",
            Element::Bf16 => "bf16",
            Element::F32 => "f32",
            Element::F64 => "f64",
        }
    }

    /// Its name in NumPy.
    pub fn numpy(self) -> &'static str {
        match self {
            Element::Bool => "bool",
            Element::I32 => "int32",
            Element::U32 => "uint32",
            Element::U64 => "uint64",
            Element::Bf16 => "bfloat16",
            Element::F32 => "float32",
            Element::F64 => "float64",
        }
    }

    /// Bytes of one element in memory.
    pub fn bytes(self) -> usize {
        match self {
            Element::Bool => 1,
            Element::Bf16 => 2,
            Element::I32 | Element::U32 | Element::F32 => 4,
            Element::U64 | Element::F64 => 8,
        }
    }

    /// Can real numbers of it be computed with?
    fn is_real(self) -> bool {
        matches!(self, Element::F32 | Element::F64)
    }

    fn is_whole(self) -> bool {
        matches!(self, Element::I32 | Element::U32 | Element::U64)
    }
}

/// The type of a tensor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Its elements.
    pub element: Element,
    /// Its shape; empty for a single element.
    pub dims: Vec<usize>,
}

impl TensorType {
    /// A tensor.
    pub fn new(element: Element, dims: &[usize]) -> TensorType {
        TensorType { element, dims: dims.to_vec() }
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Has it no element at all?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.len() * self.element.bytes()
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tensor<")?;
        self.dims.iter().try_for_each(|size| write!(f, "{size}x"))?;
        write!(f, "{}>", self.element.name())
    }
}

/// A value of one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value(u32);

impl Value {
    /// Its number, counted from 0 in its function.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A constant element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Literal {
    /// Of a real type, rounded to it.
    Real(f64),
    /// Of a whole type.
    Whole(u64),
    /// A truth value.
    Bool(bool),
}

/// Operations of one operand, element by element, that keep its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are StableHLO's
pub enum Unary {
    Abs,
    Ceil,
    Cosine,
    Exponential,
    ExponentialMinusOne,
    Floor,
    Log,
    Negate,
    Not,
    Sine,
    Sqrt,
    Tan,
    Tanh,
}

impl Unary {
    fn name(self) -> &'static str {
        match self {
            Unary::Abs => "abs",
            Unary::Ceil => "ceil",
            Unary::Cosine => "cosine",
            Unary::Exponential => "exponential",
            Unary::ExponentialMinusOne => "exponential_minus_one",
            Unary::Floor => "floor",
            Unary::Log => "log",
            Unary::Negate => "negate",
            Unary::Not => "not",
            Unary::Sine => "sine",
            Unary::Sqrt => "sqrt",
            Unary::Tan => "tan",
            Unary::Tanh => "tanh",
        }
    }

    fn takes(self, element: Element) -> bool {
        match self {
            Unary::Not => element == Element::Bool,
            Unary::Abs
            | Unary::Ceil
            | Unary::Cosine
            | Unary::Exponential
            | Unary::ExponentialMinusOne
            | Unary::Floor
            | Unary::Log
            | Unary::Negate
            | Unary::Sine
            | Unary::Sqrt
            | Unary::Tan
            | Unary::Tanh => element.is_real(),
        }
    }
}

/// Operations of two operands of one type, element by element, that keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are StableHLO's
pub enum Binary {
    Add,
    And,
    Divide,
    Minimum,
    Multiply,
    Or,
    Power,
    ShiftLeft,
    ShiftRightLogical,
    Subtract,
    Xor,
}

impl Binary {
    fn name(self) -> &'static str {
        match self {
            Binary::Add => "add",
            Binary::And => "and",
            Binary::Divide => "divide",
            Binary::Minimum => "minimum",
            Binary::Multiply => "multiply",
            Binary::Or => "or",
            Binary::Power => "power",
            Binary::ShiftLeft => "shift_left",
            Binary::ShiftRightLogical => "shift_right_logical",
            Binary::Subtract => "subtract",
            Binary::Xor => "xor",
        }
    }

    fn takes(self, element: Element) -> bool {
        match self {
            Binary::Add | Binary::Divide | Binary::Multiply | Binary::Subtract => {
                element.is_real() || element.is_whole()
            }
            Binary::Power => element.is_real(),
            Binary::And | Binary::Or | Binary::Xor => element == Element::Bool || element.is_whole(),
            Binary::Minimum | Binary::ShiftLeft | Binary::ShiftRightLogical => element.is_whole(),
        }
    }
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are StableHLO's
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Compare {
    fn name(self) -> &'static str {
        match self {
            Compare::Eq => "EQ",
            Compare::Ne => "NE",
            Compare::Lt => "LT",
            Compare::Le => "LE",
            Compare::Gt => "GT",
            Compare::Ge => "GE",
        }
    }
}

/// An attribute of an operation, as MLIR writes it.
pub type Attribute = (&'static str, String);

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Its name without `stablehlo.`.
    pub name: &'static str,
    /// What it reads.
    pub operands: Vec<Value>,
    /// What it defines.
    pub results: Vec<Value>,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// Its regions, each of one block.
    pub regions: Vec<Block>,
    /// The line of the model that it comes from.
    pub origin: Option<OriginId>,
}

/// A straight line of operations that gives values back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    /// What it is given.
    pub arguments: Vec<Value>,
    /// Its operations.
    pub operations: Vec<Operation>,
    /// What it gives back.
    pub returns: Vec<Value>,
}

/// A function.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The type of every value.
    pub types: Vec<TensorType>,
    /// Its code.
    pub body: Block,
    /// For each argument the result whose buffer may take its place.
    pub donated: Vec<Option<usize>>,
}

impl Function {
    /// The type of a value.
    pub fn of(&self, value: Value) -> &TensorType {
        &self.types[value.index()]
    }
}

/// Constants by bits and type.
type Constants = HashMap<(u64, TensorType), Value>;

/// Makes one function.
pub struct Builder {
    name: String,
    types: Vec<TensorType>,
    /// For each value the number of the block that defines it.
    homes: Vec<u32>,
    /// The blocks that are open, the innermost last, with their numbers and the constants that they hold.
    open: Vec<(u32, Block, Constants)>,
    blocks: u32,
    donated: Vec<Option<usize>>,
    origin: Option<OriginId>,
}

impl Builder {
    /// A function without arguments and operations.
    pub fn new(name: &str) -> Builder {
        Builder {
            name: name.to_string(),
            types: Vec::new(),
            homes: Vec::new(),
            open: vec![(0, Block::default(), HashMap::default())],
            blocks: 1,
            donated: Vec::new(),
            origin: None,
        }
    }

    /// Adds an argument to the function; its buffer may be given to the result of this number.
    pub fn argument(&mut self, ty: TensorType, donated_to: Option<usize>) -> Value {
        assert!(self.open.len() == 1, "arguments come before loops");
        self.donated.push(donated_to);
        let value = self.define(ty);
        self.open[0].1.arguments.push(value);
        value
    }

    /// Ends the function.
    pub fn finish(mut self, returns: Vec<Value>) -> Function {
        let (_, mut body, _) = self.open.pop().expect("the function's own block");
        assert!(self.open.is_empty(), "every loop has ended");
        for (argument, result) in self.donated.iter().enumerate() {
            if let Some(result) = *result {
                let (from, to) = (body.arguments[argument], returns[result]);
                assert!(self.of(from) == self.of(to), "a buffer is given to a result of another type");
            }
        }
        returns.iter().for_each(|&value| assert!(self.homes[value.index()] == 0, "a value leaves its block"));
        body.returns = returns;
        Function { name: self.name, types: self.types, body, donated: self.donated }
    }

    /// The line of the model that the next operations come from.
    pub fn at(&mut self, origin: Option<OriginId>) {
        self.origin = origin;
    }

    /// The type of a value.
    pub fn of(&self, value: Value) -> &TensorType {
        &self.types[value.index()]
    }

    /// The shape of a value.
    pub fn dims(&self, value: Value) -> Vec<usize> {
        self.of(value).dims.clone()
    }

    fn define(&mut self, ty: TensorType) -> Value {
        let value = Value(self.types.len() as u32);
        self.types.push(ty);
        self.homes.push(self.open.last().expect("a block is open").0);
        value
    }

    fn operation(
        &mut self,
        name: &'static str,
        operands: &[Value],
        attributes: Vec<Attribute>,
        regions: Vec<Block>,
        results: Vec<TensorType>,
    ) -> Vec<Value> {
        let home = self.open.last().expect("a block is open").0;
        for operand in operands {
            assert!(self.homes[operand.index()] == home, "`{name}` reads a value of another block");
        }
        let results: Vec<Value> = results.into_iter().map(|ty| self.define(ty)).collect();
        let origin = self.origin;
        let operation =
            Operation { name, operands: operands.to_vec(), results: results.clone(), attributes, regions, origin };
        self.open.last_mut().expect("a block is open").1.operations.push(operation);
        results
    }

    fn one(&mut self, name: &'static str, operands: &[Value], attributes: Vec<Attribute>, result: TensorType) -> Value {
        self.operation(name, operands, attributes, Vec::new(), vec![result])[0]
    }

    /// The same element everywhere.
    pub fn constant(&mut self, literal: Literal, element: Element, dims: &[usize]) -> Value {
        let ty = TensorType::new(element, dims);
        let fits = match literal {
            Literal::Real(_) => element.is_real(),
            Literal::Whole(_) => element.is_whole(),
            Literal::Bool(_) => element == Element::Bool,
        };
        assert!(fits, "{literal:?} as {ty}");
        let bits = match literal {
            Literal::Real(x) => x.to_bits(),
            Literal::Whole(n) => n,
            Literal::Bool(b) => u64::from(b),
        };
        if let Some(&known) = self.open.last().expect("a block is open").2.get(&(bits, ty.clone())) {
            return known;
        }
        let text = match (literal, element) {
            (Literal::Real(x), Element::F32) if (x as f32).is_finite() => format!("{:e}", x as f32),
            (Literal::Real(x), Element::F32) => format!("{:#010X}", (x as f32).to_bits()),
            (Literal::Real(x), _) if x.is_finite() => format!("{x:e}"),
            (Literal::Real(x), _) => format!("{:#018X}", x.to_bits()),
            (Literal::Whole(n), _) => n.to_string(),
            (Literal::Bool(b), _) => b.to_string(),
        };
        // MLIR wants a point in a real number.
        let text = match text.split_once('e') {
            Some((mantissa, exponent)) if matches!(literal, Literal::Real(_)) && !mantissa.contains('.') => {
                format!("{mantissa}.0e{exponent}")
            }
            Some(_) | None => text,
        };
        let text = if ty.is_empty() { String::new() } else { text };
        let origin = self.origin.take();
        let value = self.one("constant", &[], vec![("value", format!("dense<{text}> : {ty}"))], ty.clone());
        self.origin = origin;
        self.open.last_mut().expect("a block is open").2.insert((bits, ty), value);
        value
    }

    /// One operand, element by element.
    pub fn unary(&mut self, op: Unary, a: Value) -> Value {
        let ty = self.of(a).clone();
        assert!(op.takes(ty.element), "{} of {ty}", op.name());
        self.one(op.name(), &[a], Vec::new(), ty)
    }

    /// Two operands of one type, element by element.
    pub fn binary(&mut self, op: Binary, a: Value, b: Value) -> Value {
        let ty = self.of(a).clone();
        assert!(ty == *self.of(b), "{} of {ty} and {}", op.name(), self.of(b));
        assert!(op.takes(ty.element), "{} of {ty}", op.name());
        self.one(op.name(), &[a, b], Vec::new(), ty)
    }

    /// Compares two tensors of one type, element by element.
    pub fn compare(&mut self, how: Compare, a: Value, b: Value) -> Value {
        let ty = self.of(a).clone();
        assert!(ty == *self.of(b), "comparison of {ty} and {}", self.of(b));
        let kind = match ty.element {
            Element::F32 | Element::F64 => "FLOAT",
            Element::I32 => "SIGNED",
            Element::U32 | Element::U64 | Element::Bool => "UNSIGNED",
            Element::Bf16 => panic!("comparison of {ty}"),
        };
        let attributes = vec![
            ("comparison_direction", format!("#stablehlo<comparison_direction {}>", how.name())),
            ("compare_type", format!("#stablehlo<comparison_type {kind}>")),
        ];
        self.one("compare", &[a, b], attributes, TensorType::new(Element::Bool, &ty.dims))
    }

    /// `a` where the mask is true, elsewhere `b`; all of one shape.
    pub fn select(&mut self, mask: Value, a: Value, b: Value) -> Value {
        let ty = self.of(a).clone();
        assert!(ty == *self.of(b), "select of {ty} and {}", self.of(b));
        assert!(*self.of(mask) == TensorType::new(Element::Bool, &ty.dims), "select of {ty} by {}", self.of(mask));
        self.one("select", &[mask, a, b], Vec::new(), ty)
    }

    /// Is each element finite?
    pub fn is_finite(&mut self, a: Value) -> Value {
        let ty = self.of(a).clone();
        assert!(ty.element.is_real(), "is_finite of {ty}");
        self.one("is_finite", &[a], Vec::new(), TensorType::new(Element::Bool, &ty.dims))
    }

    /// The same elements as another type; nothing if it is theirs.
    pub fn convert(&mut self, a: Value, element: Element) -> Value {
        let ty = self.of(a).clone();
        if ty.element == element {
            return a;
        }
        self.one("convert", &[a], Vec::new(), TensorType::new(element, &ty.dims))
    }

    /// Numbers of 32 bits, rounded to [`Element::Bf16`]. The rounding is an operation of its own: compilers may leave out a
    /// conversion there and back.
    pub fn narrow(&mut self, a: Value) -> Value {
        let ty = self.of(a).clone();
        assert!(ty.element == Element::F32, "narrowing of {ty}");
        let attributes = vec![("exponent_bits", "8 : i32".into()), ("mantissa_bits", "7 : i32".into())];
        let rounded = self.one("reduce_precision", &[a], attributes, ty);
        self.convert(rounded, Element::Bf16)
    }

    /// The same elements in another shape; nothing if it is theirs.
    pub fn reshape(&mut self, a: Value, dims: &[usize]) -> Value {
        let ty = self.of(a).clone();
        let to = TensorType::new(ty.element, dims);
        assert!(ty.len() == to.len(), "reshape of {ty} to {to}");
        if ty == to { a } else { self.one("reshape", &[a], Vec::new(), to) }
    }

    /// Repeats a tensor: its dimension `i` becomes dimension `along[i]` of the result.
    pub fn broadcast(&mut self, a: Value, dims: &[usize], along: &[usize]) -> Value {
        let ty = self.of(a).clone();
        let to = TensorType::new(ty.element, dims);
        let fits = ty.dims.len() == along.len()
            && along.windows(2).all(|pair| pair[0] < pair[1])
            && ty.dims.iter().zip(along).all(|(size, &at)| dims.get(at) == Some(size));
        assert!(fits, "broadcast of {ty} to {to} along {along:?}");
        if ty == to {
            return a;
        }
        self.one("broadcast_in_dim", &[a], vec![("broadcast_dimensions", array(along))], to)
    }

    /// Numbers 0, 1, ... along the last dimension.
    pub fn iota(&mut self, element: Element, dims: &[usize]) -> Value {
        assert!(element != Element::Bool && !dims.is_empty(), "iota of {element:?} {dims:?}");
        let attributes = vec![("iota_dimension", format!("{} : i64", dims.len() - 1))];
        self.one("iota", &[], attributes, TensorType::new(element, dims))
    }

    /// The same tensor; the device computes it, whole, before it computes what uses it.
    pub fn barrier(&mut self, a: Value) -> Value {
        let ty = self.of(a).clone();
        self.one("optimization_barrier", &[a], Vec::new(), ty)
    }

    /// Part of a tensor.
    pub fn slice(&mut self, a: Value, start: &[usize], end: &[usize]) -> Value {
        let ty = self.of(a).clone();
        let fits = start.len() == ty.dims.len()
            && end.len() == ty.dims.len()
            && start.iter().zip(end).zip(&ty.dims).all(|((start, end), size)| start <= end && end <= size);
        assert!(fits, "slice {start:?} to {end:?} of {ty}");
        let dims: Vec<usize> = start.iter().zip(end).map(|(start, end)| end - start).collect();
        if dims == ty.dims {
            return a;
        }
        let strides = vec![1; dims.len()];
        let attributes =
            vec![("start_indices", array(start)), ("limit_indices", array(end)), ("strides", array(&strides))];
        self.one("slice", &[a], attributes, TensorType::new(ty.element, &dims))
    }

    /// Tensors one after the other along a dimension; nothing if it is one.
    pub fn concatenate(&mut self, parts: &[Value], along: usize) -> Value {
        let first = *parts.first().expect("at least one part");
        let ty = self.of(first).clone();
        assert!(along < ty.dims.len(), "concatenation of {ty} along {along}");
        let mut dims = ty.dims.clone();
        dims[along] = 0;
        for &part in parts {
            let of = self.of(part).clone();
            dims[along] += of.dims.get(along).copied().unwrap_or(0);
            let rest = TensorType {
                dims: [&of.dims[..along], &[ty.dims[along]], &of.dims[along + 1..]].concat(),
                ..of.clone()
            };
            assert!(rest == ty, "concatenation of {ty} and {of} along {along}");
        }
        if parts.len() == 1 {
            return first;
        }
        let attributes = vec![("dimension", format!("{along} : i64"))];
        self.one("concatenate", parts, attributes, TensorType::new(ty.element, &dims))
    }

    /// One row, `a[row]`, of a tensor; a row past the end is the last one.
    pub fn row(&mut self, a: Value, row: Value) -> Value {
        let ty = self.of(a).clone();
        let mut sizes = ty.dims.clone();
        sizes[0] = 1;
        let at = self.place(&ty, row);
        let operands: Vec<Value> = std::iter::once(a).chain(at).collect();
        let slice = self.one(
            "dynamic_slice",
            &operands,
            vec![("slice_sizes", array(&sizes))],
            TensorType::new(ty.element, &sizes),
        );
        self.reshape(slice, &ty.dims[1..])
    }

    /// The tensor with another row, `a[row] = b`; a row past the end is the last one.
    pub fn set_row(&mut self, a: Value, row: Value, b: Value) -> Value {
        let ty = self.of(a).clone();
        assert!(*self.of(b) == TensorType::new(ty.element, &ty.dims[1..]), "row {} of {ty}", self.of(b));
        let mut sizes = ty.dims.clone();
        sizes[0] = 1;
        let b = self.reshape(b, &sizes);
        let at = self.place(&ty, row);
        let operands: Vec<Value> = [a, b].into_iter().chain(at).collect();
        self.one("dynamic_update_slice", &operands, Vec::new(), ty)
    }

    fn place(&mut self, ty: &TensorType, row: Value) -> Vec<Value> {
        assert!(*self.of(row) == TensorType::new(Element::I32, &[]), "row number {}", self.of(row));
        let zero = self.constant(Literal::Whole(0), Element::I32, &[]);
        std::iter::once(row).chain(vec![zero; ty.dims.len() - 1]).collect()
    }

    /// So many elements of a tensor of one dimension, from `at` on; if it has fewer from there on, its last ones.
    pub fn part(&mut self, a: Value, at: Value, size: usize) -> Value {
        let ty = self.of(a).clone();
        assert!(ty.dims.len() == 1 && size <= ty.len(), "{size} elements of {ty}");
        let at = self.place(&ty, at);
        let operands: Vec<Value> = std::iter::once(a).chain(at).collect();
        let attributes = vec![("slice_sizes", array(&[size]))];
        self.one("dynamic_slice", &operands, attributes, TensorType::new(ty.element, &[size]))
    }

    /// A tensor of one dimension with other elements from `at` on.
    pub fn set_part(&mut self, a: Value, at: Value, b: Value) -> Value {
        let (ty, part) = (self.of(a).clone(), self.of(b).clone());
        let fits = ty.dims.len() == 1 && part.dims.len() == 1 && part.len() <= ty.len() && part.element == ty.element;
        assert!(fits, "{part} in {ty}");
        let at = self.place(&ty, at);
        let operands: Vec<Value> = [a, b].into_iter().chain(at).collect();
        self.one("dynamic_update_slice", &operands, Vec::new(), ty)
    }

    /// `a[index] += b` for every element of `index` and `b`; all have one dimension. An index past the end adds nothing.
    pub fn scatter_add(&mut self, a: Value, index: Value, b: Value) -> Value {
        let (ty, at, part) = (self.of(a).clone(), self.of(index).clone(), self.of(b).clone());
        let fits = ty.dims.len() == 1 && at.dims.len() == 1 && at.dims == part.dims && part.element == ty.element;
        assert!(fits && at.element == Element::I32 && ty.element.is_real(), "{part} added to {ty} at {at}");
        let single = TensorType::new(ty.element, &[]);
        let region = self.region(&[single.clone(), single], |b, given| vec![b.binary(Binary::Add, given[0], given[1])]);
        let dimensions = "#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], \
                          index_vector_dim = 1>";
        let attributes = vec![
            ("scatter_dimension_numbers", dimensions.into()),
            ("indices_are_sorted", "false".into()),
            ("unique_indices", "false".into()),
        ];
        self.operation("scatter", &[a, index, b], attributes, vec![region], vec![ty])[0]
    }

    /// `from[index]` for every element of `index`, where `from` has one dimension. An index past the end means the last element.
    pub fn gather(&mut self, from: Value, index: Value) -> Value {
        let (ty, at) = (self.of(from).clone(), self.of(index).clone());
        assert!(ty.dims.len() == 1 && !ty.is_empty(), "gather from {ty}");
        assert!(at.element.is_whole(), "gather at {at}");
        let dimensions = format!(
            "#stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = {}>",
            at.dims.len()
        );
        let attributes = vec![
            ("dimension_numbers", dimensions),
            ("slice_sizes", array(&[1])),
            ("indices_are_sorted", "false".into()),
        ];
        self.one("gather", &[from, index], attributes, TensorType::new(ty.element, &at.dims))
    }

    /// The sum (or the least, or, of truth values and bits, the conjunction or disjunction) along one dimension.
    pub fn reduce(&mut self, op: Binary, a: Value, along: usize) -> Value {
        let ty = self.of(a).clone();
        assert!(along < ty.dims.len() && op.takes(ty.element), "{} of {ty} along {along}", op.name());
        let start = match (op, ty.element) {
            (Binary::Add, Element::F32 | Element::F64) => Literal::Real(0.0),
            (Binary::Add | Binary::Or, Element::I32 | Element::U32 | Element::U64) => Literal::Whole(0),
            (Binary::Minimum, Element::I32) => Literal::Whole(i32::MAX as u64),
            (Binary::And, Element::Bool) => Literal::Bool(true),
            (Binary::Or, Element::Bool) => Literal::Bool(false),
            (op, element) => panic!("nothing is neutral to {} of {element:?}", op.name()),
        };
        let mut dims = ty.dims.clone();
        dims.remove(along);
        let start = self.constant(start, ty.element, &[]);
        let single = TensorType::new(ty.element, &[]);
        let region = self.region(&[single.clone(), single], |b, given| vec![b.binary(op, given[0], given[1])]);
        let attributes = vec![("dimensions", array(&[along]))];
        self.operation("reduce", &[a, start], attributes, vec![region], vec![TensorType::new(ty.element, &dims)])[0]
    }

    /// The product of a row and a matrix, as exact as the device has it.
    pub fn product(&mut self, row: Value, matrix: Value) -> Value {
        let (ty, of) = (self.of(row).clone(), self.of(matrix).clone());
        let fits = ty.element == of.element && ty.element.is_real() && ty.dims.len() == 1 && of.dims.len() == 2;
        assert!(fits && ty.dims[0] == of.dims[0], "product of {ty} and {of}");
        let dimensions = "#stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>";
        let highest = "#stablehlo<precision HIGHEST>";
        let attributes =
            vec![("dot_dimension_numbers", dimensions.into()), ("precision_config", format!("[{highest}, {highest}]"))];
        self.one("dot_general", &[row, matrix], attributes, TensorType::new(ty.element, &of.dims[1..]))
    }

    /// The product of two matrices, summed along a dimension of each, as exact as the device has it: what is left of the first by what is left of the second.
    pub fn contract(&mut self, (a, of_a): (Value, usize), (c, of_c): (Value, usize)) -> Value {
        let (ty, of) = (self.of(a).clone(), self.of(c).clone());
        let fits = ty.element == of.element && ty.element.is_real() && ty.dims.len() == 2 && of.dims.len() == 2;
        assert!(fits && ty.dims[of_a] == of.dims[of_c], "product of {ty} along {of_a} and {of} along {of_c}");
        let dimensions =
            format!("#stablehlo.dot<lhs_contracting_dimensions = [{of_a}], rhs_contracting_dimensions = [{of_c}]>");
        let highest = "#stablehlo<precision HIGHEST>";
        let attributes =
            vec![("dot_dimension_numbers", dimensions), ("precision_config", format!("[{highest}, {highest}]"))];
        let dims = [ty.dims[1 - of_a], of.dims[1 - of_c]];
        self.one("dot_general", &[a, c], attributes, TensorType::new(ty.element, &dims))
    }

    /// A matrix with its rows as columns.
    pub fn transpose(&mut self, a: Value) -> Value {
        let ty = self.of(a).clone();
        assert!(ty.dims.len() == 2, "transpose of {ty}");
        let to = TensorType::new(ty.element, &[ty.dims[1], ty.dims[0]]);
        self.one("transpose", &[a], vec![("permutation", array(&[1, 0]))], to)
    }

    /// The row `from[index]` of a matrix for every element of `index`: `[.., column]`. An index past the end means the last row.
    pub fn gather_rows(&mut self, from: Value, index: Value) -> Value {
        let (ty, at) = (self.of(from).clone(), self.of(index).clone());
        assert!(ty.dims.len() == 2 && !ty.is_empty(), "rows of {ty}");
        assert!(at.element.is_whole(), "rows at {at}");
        let rank = at.dims.len();
        let dimensions = format!(
            "#stablehlo.gather<offset_dims = [{rank}], collapsed_slice_dims = [0], start_index_map = [0], \
             index_vector_dim = {rank}>"
        );
        let attributes = vec![
            ("dimension_numbers", dimensions),
            ("slice_sizes", array(&[1, ty.dims[1]])),
            ("indices_are_sorted", "false".into()),
        ];
        let dims: Vec<usize> = at.dims.iter().copied().chain([ty.dims[1]]).collect();
        self.one("gather", &[from, index], attributes, TensorType::new(ty.element, &dims))
    }

    /// Repeats `body` as long as `condition` holds; both see what is carried and nothing else.
    pub fn repeat(
        &mut self,
        carried: &[Value],
        condition: impl FnOnce(&mut Builder, &[Value]) -> Value,
        body: impl FnOnce(&mut Builder, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let types: Vec<TensorType> = carried.iter().map(|&value| self.of(value).clone()).collect();
        let origin = self.origin.take();
        let condition = self.region(&types, |b, given| vec![condition(b, given)]);
        let truth = TensorType::new(Element::Bool, &[]);
        assert!(self.types[condition.returns[0].index()] == truth, "the condition of a loop is one truth value");
        let body = self.region(&types, body);
        self.origin = origin;
        let ends: Vec<&TensorType> = body.returns.iter().map(|value| &self.types[value.index()]).collect();
        assert!(ends == types.iter().collect::<Vec<_>>(), "a loop changes the types of what it carries");
        self.operation("while", carried, Vec::new(), vec![condition, body], types)
    }

    fn region(&mut self, types: &[TensorType], code: impl FnOnce(&mut Builder, &[Value]) -> Vec<Value>) -> Block {
        let number = self.blocks;
        self.blocks += 1;
        self.open.push((number, Block::default(), HashMap::default()));
        let arguments: Vec<Value> = types.iter().map(|ty| self.define(ty.clone())).collect();
        let returns = code(self, &arguments);
        let (_, block, _) = self.open.pop().expect("the region's own block");
        returns
            .iter()
            .for_each(|&v| assert!(self.homes[v.index()] == number, "a region gives back a value of another block"));
        Block { arguments, returns, ..block }
    }
}

fn array(numbers: &[usize]) -> String {
    if numbers.is_empty() {
        return "array<i64>".into();
    }
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    format!("array<i64: {}>", numbers.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(dims: &[usize]) -> TensorType {
        TensorType::new(Element::F64, dims)
    }

    fn panics(code: impl FnOnce(&mut Builder) + std::panic::UnwindSafe) -> bool {
        std::panic::catch_unwind(|| code(&mut Builder::new("f"))).is_err()
    }

    #[test]
    fn ill_typed_operations_are_refused() {
        assert!(panics(|b| {
            let (x, y) = (b.argument(real(&[3]), None), b.argument(real(&[4]), None));
            b.binary(Binary::Add, x, y);
        }));
        assert!(panics(|b| {
            let x = b.argument(real(&[3]), None);
            b.unary(Unary::Not, x);
        }));
        assert!(panics(|b| {
            let x = b.argument(real(&[3]), None);
            b.broadcast(x, &[3, 2], &[1]);
        }));
        assert!(panics(|b| {
            let x = b.argument(real(&[3]), None);
            b.slice(x, &[2], &[4]);
        }));
        assert!(panics(|b| {
            let (x, i) = (b.argument(real(&[3]), None), b.argument(real(&[2]), None));
            b.gather(x, i);
        }));
        assert!(panics(|b| {
            b.constant(Literal::Real(1.0), Element::I32, &[]);
        }));
        assert!(panics(|b| {
            let (x, row) = (b.argument(real(&[3, 2]), None), b.argument(real(&[]), None));
            b.row(x, row);
        }));
    }

    #[test]
    fn loops_capture_nothing() {
        assert!(panics(|b| {
            let x = b.argument(real(&[]), None);
            b.repeat(
                &[x],
                |b, given| b.compare(Compare::Lt, given[0], given[0]),
                |b, given| vec![b.binary(Binary::Add, given[0], x)],
            );
        }));
        assert!(panics(|b| {
            let x = b.argument(real(&[]), None);
            b.repeat(
                &[x],
                |b, given| b.compare(Compare::Lt, given[0], given[0]),
                |b, given| vec![b.compare(Compare::Lt, given[0], given[0])],
            );
        }));
    }

    #[test]
    fn a_buffer_is_given_to_a_result_of_its_type_only() {
        let donate = |dims: &[usize]| {
            let mut b = Builder::new("f");
            let x = b.argument(real(&[3]), Some(0));
            let y = b.reshape(x, &[3]);
            let zero = b.constant(Literal::Real(0.0), Element::F64, dims);
            let result = if dims == [3] { b.binary(Binary::Add, y, zero) } else { zero };
            b.finish(vec![result])
        };
        assert_eq!(donate(&[3]).donated, [Some(0)]);
        assert!(std::panic::catch_unwind(|| donate(&[4])).is_err());
    }
}
