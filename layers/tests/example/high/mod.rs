pub mod below;

use below::Deep;

pub struct High;

pub fn calls() -> Deep {
    let _ = crate::low::Made;
    crate::low::passed_on(High)
}

impl crate::Root {}
