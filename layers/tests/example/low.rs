use crate::high::below::*;
use crate::{high, High};

made! { Made }

pub fn passed_on(_: High) -> Deep {
    high::calls()
}

#[cfg(test)]
mod tests {
    use crate::high::NotCounted;
}
