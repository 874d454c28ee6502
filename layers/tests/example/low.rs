use crate::High;

pub fn passed_on(_: High) -> crate::high::below::Deep {
    crate::high::below::Deep
}

#[cfg(test)]
mod tests {
    use crate::high::NotCounted;
}
