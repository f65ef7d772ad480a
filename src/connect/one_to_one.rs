//! Cell `i` with cell `i`. Ordered by cell; the grids may differ if they have equally many cells.

use super::{ConnectError, Ends, Entry};

pub(super) fn directed(ends: Ends<'_>) -> Result<Vec<Entry>, ConnectError> {
    let (source, target) = (ends.source().cells(), ends.target().cells());
    if source != target {
        return Err(ConnectError::DifferentSizes { source, target });
    }
    Ok((0..target as u32).map(|i| (i, i)).collect())
}
