pub mod below;

use below::Deep;

pub struct High;

pub fn calls() -> Deep {
    crate::low::passed_on(High)
}
