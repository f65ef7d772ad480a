/// The model, ready to be run.
///
/// Everything it can do is documented at [`Named`], which it dereferences to.
pub struct Model(Named<Real>);

/// The kernels of this crate.
struct Own;

impl Kernels<Real> for Own {
    fn run(&self, kernel: usize, call: Call<'_, Real>) -> Result<(), Fault> {
        if let Some(Some(kernel)) = KERNELS.as_flattened().get(kernel) {
            kernel(call);
        }
        Ok(())
    }
}

impl Model {
    /// A model with default parameters that uses at most `threads` threads.
    pub fn new(sizes: Sizes, threads: usize) -> Result<Model, Error> {
        Model::with_sizes(&sizes.list(), threads)
    }

    /// The same with the sizes in a list, in the order of the populations.
    pub fn with_sizes(sizes: &[usize], threads: usize) -> Result<Model, Error> {
        Ok(Model(Named::with(&SPEC, Box::new(Own), sizes, threads)?))
    }
}

impl Deref for Model {
    type Target = Named<Real>;

    fn deref(&self) -> &Named<Real> {
        &self.0
    }
}

impl DerefMut for Model {
    fn deref_mut(&mut self) -> &mut Named<Real> {
        &mut self.0
    }
}
