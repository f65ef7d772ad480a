//! Numbers that learn, on a device.
//!
//! In come a function that moves arrays ([`Function`]) and their values; out go the values when somebody asks.
//! Never true here: an array is copied where its memory can be reused, or it is known how numbers move.

use super::EngineError;
use super::executables::Compiler;
use super::inputs::Table;
use super::xla::{compile, numbers, upload};
use crate::codegen::stablehlo::builder::{Element, Function, TensorType};
use crate::codegen::stablehlo::mlir;
use crate::pjrt::{Argument, Buffer, Executable};

/// Arrays on a device, and what moves them.
pub struct Descent {
    compiler: Compiler,
    executable: Executable,
    /// The types of the arrays.
    types: Vec<TensorType>,
    /// None while a step takes them, and after one that failed.
    arrays: Vec<Option<Buffer>>,
    masks: Vec<Buffer>,
}

/// Real numbers as a type has them.
pub(super) fn reals(ty: &TensorType, values: &[f64]) -> Table {
    match ty.element {
        Element::F32 => Table::F32(values.iter().map(|&x| x as f32).collect()),
        _ => Table::F64(values.to_vec()),
    }
}

impl Descent {
    /// Compiles a function, or finds it in the compiler's cache. Its first arguments are the arrays, given to the results of the same places; then come
    /// masks, slopes, and numbers in double precision.
    pub fn new(compiler: &Compiler, function: &Function, masks: &[Vec<bool>]) -> Result<Descent, EngineError> {
        let module = mlir::write("update", std::slice::from_ref(function), &[], mlir::Format::Text);
        let executable = compile(compiler, &module)?;
        let all: Vec<TensorType> = function.body.arguments.iter().map(|&value| function.of(value).clone()).collect();
        let types = all[..function.donated.iter().filter(|result| result.is_some()).count()].to_vec();
        let masks = masks.iter().zip(&all[types.len()..]);
        let masks = masks
            .map(|(mask, ty)| upload(compiler.client(), ty, Table::Bool(mask.clone())))
            .collect::<Result<_, _>>()?;
        let arrays = types.iter().map(|_| None).collect();
        Ok(Descent { compiler: compiler.clone(), executable, types, arrays, masks })
    }

    /// Gives an array values.
    pub fn set(&mut self, at: usize, values: &[f64]) -> Result<(), EngineError> {
        let ty = &self.types[at];
        self.arrays[at] = Some(upload(self.compiler.client(), ty, reals(ty, values))?);
        Ok(())
    }

    /// An array.
    pub fn array(&self, at: usize) -> Result<&Buffer, EngineError> {
        let array = self.arrays.get(at).and_then(Option::as_ref);
        array.ok_or_else(|| EngineError("internal error: numbers that learn have no values on the device".into()))
    }

    /// The values of an array.
    pub fn values(&self, at: usize) -> Result<Vec<f64>, EngineError> {
        numbers(self.array(at)?)
    }

    /// Moves all arrays. The answer is the last result, if it is none of the arrays: one number.
    pub fn step(&mut self, slopes: &[Buffer], by: &[f64]) -> Result<Option<f64>, EngineError> {
        (0..self.arrays.len()).try_for_each(|at| self.array(at).map(|_| ()))?;
        let ty = TensorType::new(Element::F64, &[by.len()]);
        let by = upload(self.compiler.client(), &ty, Table::F64(by.to_vec()))?;
        let arrays = self.arrays.iter_mut().filter_map(Option::take).map(Argument::Donate);
        let kept = self.masks.iter().chain(slopes).chain([&by]).map(Argument::Keep);
        let mut results = self.executable.execute(arrays.chain(kept).collect())?.into_iter();
        self.arrays.iter_mut().zip(&mut results).for_each(|(array, result)| *array = Some(result));
        let last = results.next().map(|last| numbers(&last)).transpose()?;
        Ok(last.and_then(|last| last.first().copied()))
    }
}
