//! The one place that knows MLIR: functions of our own become a module.
//!
//! In come [`Function`]s, checked when they were built, and the lines of the model; out goes MLIR as text or bytecode.
//! Never true here: an operation is chosen or a type is worked out; and MLIR's own verifier is not relied on, since it knows nothing
//! of StableHLO, whose operations are unregistered here.

use super::builder::{Block, Function, TensorType};
use crate::step::{Origin, OriginId};
use melior::Context;
use melior::dialect::{DialectHandle, func};
use melior::ir::attribute::{StringAttribute, TypeAttribute};
use melior::ir::operation::{OperationBuilder, OperationLike, OperationMutLike, OperationPrintingFlags};
use melior::ir::r#type::FunctionType;
use melior::ir::{self, Attribute, BlockLike, Identifier, Location, Module, Region, RegionLike, Type, Value};
use rustc_hash::FxHashMap as HashMap;

/// How a module is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text without source places, for people.
    Plain,
    /// Text with source places.
    Text,
    /// MLIR's bytecode, with source places.
    Bytecode,
}

/// Writes functions as one module of the given name. The text ends with a line break.
///
/// # Panics
/// Where MLIR refuses what the builder has made: a bug of the compiler.
pub fn write(name: &str, functions: &[Function], origins: &[Origin], format: Format) -> Vec<u8> {
    let context = Context::new();
    context.set_allow_unregistered_dialects(true);
    DialectHandle::func().load_dialect(&context);
    let writer = Writer { context: &context, origins };
    let unknown = Location::unknown(&context);
    let mut module = Module::new(unknown);
    let symbol: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    module.as_operation_mut().set_attribute("sym_name", StringAttribute::new(&context, &symbol).into());
    for function in functions {
        module.body().append_operation(writer.function(function));
    }
    assert!(module.as_operation().verify(), "MLIR accepts what the builder has made");
    let flags = || OperationPrintingFlags::new();
    let text = |flags| {
        let text = module.as_operation().to_string_with_flags(flags).expect("MLIR prints UTF-8");
        format!("{}\n", text.trim_end()).into_bytes()
    };
    match format {
        Format::Plain => text(flags()),
        Format::Text => text(flags().enable_debug_info(true, false)),
        Format::Bytecode => module.as_operation().write_bytecode(),
    }
}

struct Writer<'c, 'a> {
    context: &'c Context,
    origins: &'a [Origin],
}

impl<'c> Writer<'c, '_> {
    fn ty(&self, ty: &TensorType) -> Type<'c> {
        Type::parse(self.context, &ty.to_string()).expect("a type that MLIR reads")
    }

    fn attribute(&self, text: &str) -> Attribute<'c> {
        Attribute::parse(self.context, text).unwrap_or_else(|| panic!("MLIR does not read the attribute `{text}`"))
    }

    fn place(&self, origin: Option<OriginId>) -> Location<'c> {
        match origin.and_then(|id| self.origins.get(id.0 as usize)) {
            Some(origin) => Location::new(self.context, &origin.file, origin.line as usize, 1),
            None => Location::unknown(self.context),
        }
    }

    fn function(&self, function: &Function) -> ir::Operation<'c> {
        let types = |values: &[super::builder::Value]| -> Vec<Type<'c>> {
            values.iter().map(|&value| self.ty(function.of(value))).collect()
        };
        let ty = FunctionType::new(self.context, &types(&function.body.arguments), &types(&function.body.returns));
        let region = Region::new();
        region.append_block(self.block(function, &function.body, "func.return"));
        let donated = |result: &Option<usize>| match result {
            Some(result) => format!("{{tf.aliasing_output = {result} : i32}}"),
            None => "{}".into(),
        };
        let donated: Vec<String> = function.donated.iter().map(donated).collect();
        let attributes =
            [(Identifier::new(self.context, "arg_attrs"), self.attribute(&format!("[{}]", donated.join(", "))))];
        func::func(
            self.context,
            StringAttribute::new(self.context, &function.name),
            TypeAttribute::new(ty.into()),
            region,
            &attributes,
            Location::unknown(self.context),
        )
    }

    fn block(&self, function: &Function, block: &Block, terminator: &str) -> ir::Block<'c> {
        let unknown = Location::unknown(self.context);
        let arguments: Vec<_> =
            block.arguments.iter().map(|&argument| (self.ty(function.of(argument)), unknown)).collect();
        let made = ir::Block::new(&arguments);
        {
            let mut values: HashMap<usize, Value<'c, '_>> = HashMap::default();
            for (number, argument) in block.arguments.iter().enumerate() {
                values.insert(argument.index(), made.argument(number).expect("as many arguments").into());
            }
            for operation in &block.operations {
                let operands: Vec<Value<'c, '_>> = operation.operands.iter().map(|v| values[&v.index()]).collect();
                let results: Vec<Type<'c>> = operation.results.iter().map(|&v| self.ty(function.of(v))).collect();
                let attributes: Vec<_> = (operation.attributes.iter())
                    .map(|(name, text)| (Identifier::new(self.context, name), self.attribute(text)))
                    .collect();
                let regions = operation.regions.iter().map(|inner| {
                    let region = Region::new();
                    region.append_block(self.block(function, inner, "stablehlo.return"));
                    region
                });
                let built =
                    OperationBuilder::new(&format!("stablehlo.{}", operation.name), self.place(operation.origin))
                        .add_operands(&operands)
                        .add_results(&results)
                        .add_attributes(&attributes)
                        .add_regions_vec(regions.collect())
                        .build()
                        .expect("an operation that MLIR builds");
                let built = made.append_operation(built);
                for (number, result) in operation.results.iter().enumerate() {
                    values.insert(result.index(), built.result(number).expect("as many results").into());
                }
            }
            let returns: Vec<Value<'c, '_>> = block.returns.iter().map(|v| values[&v.index()]).collect();
            let end = OperationBuilder::new(terminator, unknown).add_operands(&returns).build();
            made.append_operation(end.expect("an operation that MLIR builds"));
        }
        made
    }
}
