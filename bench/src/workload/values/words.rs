//! Random strings.

use peregrine_harness::dice::Dice;

/// The 64 letters and digits: 64, so that six bits give one; a and e are in it twice.
const ALPHABET: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789ae";

/// The 32 letters of words; vowels are in it twice, so that the words look less strange.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyzaeioue";

/// The number of digits that 64 random bits give, with no digit noticeably more likely than another.
const DIGITS_AT_ONCE: u32 = 9;

/// Appends `length` random letters and digits.
pub fn letters(dice: &mut Dice, length: usize, out: &mut String) {
    let mut bits = 0;
    for at in 0..length {
        if at % 10 == 0 {
            bits = dice.bits();
        }
        out.push(char::from(ALPHABET[(bits & 63) as usize]));
        bits >>= 6;
    }
}

/// Appends `length` random digits.
pub fn digits(dice: &mut Dice, length: usize, out: &mut String) {
    let mut source = Digits::default();
    for _ in 0..length {
        out.push(source.next(dice));
    }
}

/// Draws digits, several from each random number.
#[derive(Debug, Default)]
pub struct Digits {
    bits: u64,
    left: u32,
}

impl Digits {
    /// Returns the next digit.
    pub fn next(&mut self, dice: &mut Dice) -> char {
        if self.left == 0 {
            self.bits = dice.bits();
            self.left = DIGITS_AT_ONCE;
        }
        self.left -= 1;
        let digit = (self.bits % 10) as u8;
        self.bits /= 10;
        char::from(b'0' + digit)
    }
}

/// Appends capitalized words with blanks between them, `length` characters in all.
pub fn words(dice: &mut Dice, length: usize, out: &mut String) {
    let mut bits = 0_u64;
    let mut word = 0;
    for at in 0..length {
        if at % 12 == 0 {
            bits = dice.bits();
        }
        let letter = LETTERS[(bits & 31) as usize];
        bits >>= 5;
        // A word ends after three letters or more; a text neither begins nor ends with a blank.
        let ends = word >= 3 && at + 1 < length && (word >= 9 || letter & 3 == 0);
        if ends {
            out.push(' ');
            word = 0;
        } else if word == 0 {
            out.push(char::from(letter.to_ascii_uppercase()));
            word = 1;
        } else {
            out.push(char::from(letter));
            word += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_have_their_length_and_nothing_that_needs_escaping() {
        let mut dice = Dice::new(1, 1);
        for length in 0..200 {
            for make in [letters, digits, words] {
                let mut text = String::new();
                make(&mut dice, length, &mut text);
                assert_eq!(text.len(), length);
                assert_eq!(text.trim(), text);
                assert!(text.chars().all(|c| c.is_ascii_alphanumeric() || c == ' '));
            }
        }
    }

    #[test]
    fn every_digit_is_as_likely() {
        let mut dice = Dice::new(3, 1);
        let mut text = String::new();
        digits(&mut dice, 100_000, &mut text);
        for digit in '0'..='9' {
            let count = text.matches(digit).count();
            assert!((9_500..10_500).contains(&count), "{digit}: {count}");
        }
    }
}
