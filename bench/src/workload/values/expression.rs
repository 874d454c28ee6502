//! Expressions of workload files.
//!
//! They have whole numbers, strings in single quotes, names, `+ - * / %`, comparisons, `and or not`, `if(condition, a,
//! b)`, `min(a, b)`, `max(a, b)` and `null`.
//!
//! An operation without a result (a string plus 1, a division by zero, a number beyond 64 bits) gives NULL. NULL is
//! neither less nor greater than anything; `x = null` tests for it. 0 and NULL are false.

use peregrine_harness::engines::Datum;

/// The index of a variable among those of a transaction or row.
pub type Slot = usize;

/// An expression whose names have been looked up.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A value.
    Constant(Datum),
    /// A variable.
    Variable(Slot),
    /// `not a`
    Not(Box<Expression>),
    /// `a + b` and so on.
    Binary(Operator, Box<Expression>, Box<Expression>),
    /// `if(condition, a, b)`
    If(Box<[Expression; 3]>),
}

/// An operator with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`, rounded towards zero
    Divide,
    /// `%`
    Remainder,
    /// `=`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `and`
    And,
    /// `or`
    Or,
    /// `min(a, b)`
    Least,
    /// `max(a, b)`
    Greatest,
}

/// The maximum nesting of an expression.
const DEEPEST: usize = 64;

/// The fault of an expression, with its byte.
pub type Fault = (usize, String);

impl Expression {
    /// Parses `text`; `lookup` returns the meaning of a name.
    ///
    /// # Errors
    /// The fault, with its byte in the text.
    pub fn parse(
        text: &str,
        lookup: &dyn Fn(&str) -> Result<Expression, String>,
    ) -> Result<Self, Fault> {
        let mut parser = Parser {
            text,
            at: 0,
            depth: 0,
            lookup,
        };
        let expression = parser.either()?;
        parser.skip_blanks();
        if parser.at < text.len() {
            return Err((
                parser.at,
                format!("'{}' is not understood here", parser.shown()),
            ));
        }
        Ok(expression)
    }

    /// Creates the expression for a whole number.
    #[must_use]
    pub fn number(number: i64) -> Self {
        Self::Constant(Datum::Integer(number))
    }

    /// Returns the value for these variables.
    #[must_use]
    pub fn value(&self, variables: &[Datum]) -> Datum {
        match self {
            Self::Constant(value) => value.clone(),
            Self::Variable(slot) => variables.get(*slot).cloned().unwrap_or_default(),
            Self::Not(operand) => Datum::Integer(i64::from(!operand.holds(variables))),
            Self::If(parts) => {
                let [condition, yes, no] = parts.as_ref();
                if condition.holds(variables) {
                    yes.value(variables)
                } else {
                    no.value(variables)
                }
            }
            Self::Binary(operator, left, right) => operator.apply(left, right, variables),
        }
    }

    /// Returns the value as a whole number, if it is one.
    #[must_use]
    pub fn integer(&self, variables: &[Datum]) -> Option<i64> {
        match self {
            Self::Constant(Datum::Integer(number)) => Some(*number),
            Self::Variable(slot) => variables.get(*slot).and_then(Datum::integer),
            other => other.value(variables).integer(),
        }
    }

    /// Returns whether the value is true: neither 0 nor NULL.
    #[must_use]
    pub fn holds(&self, variables: &[Datum]) -> bool {
        !matches!(self.value(variables), Datum::Null | Datum::Integer(0))
    }

    /// Returns its value, if it uses no variable.
    #[must_use]
    pub fn constant(&self) -> Option<Datum> {
        self.is_constant().then(|| self.value(&[]))
    }

    fn is_constant(&self) -> bool {
        match self {
            Self::Constant(_) => true,
            Self::Variable(_) => false,
            Self::Not(operand) => operand.is_constant(),
            Self::Binary(_, left, right) => left.is_constant() && right.is_constant(),
            Self::If(parts) => parts.iter().all(Self::is_constant),
        }
    }

    /// Replaces the expression by its value, if it is constant.
    fn folded(self) -> Self {
        match self.constant() {
            Some(value) => Self::Constant(value),
            None => self,
        }
    }
}

impl Operator {
    fn apply(self, left: &Expression, right: &Expression, variables: &[Datum]) -> Datum {
        let truth = |held: bool| Datum::Integer(i64::from(held));
        match self {
            Self::And => return truth(left.holds(variables) && right.holds(variables)),
            Self::Or => return truth(left.holds(variables) || right.holds(variables)),
            Self::Equal => return truth(left.value(variables) == right.value(variables)),
            Self::Unequal => return truth(left.value(variables) != right.value(variables)),
            _ => {}
        }
        let (Some(a), Some(b)) = (left.integer(variables), right.integer(variables)) else {
            return match self {
                Self::Less | Self::AtMost | Self::Greater | Self::AtLeast => truth(false),
                _ => Datum::Null,
            };
        };
        let number = match self {
            Self::Add => a.checked_add(b),
            Self::Subtract => a.checked_sub(b),
            Self::Multiply => a.checked_mul(b),
            Self::Divide => a.checked_div(b),
            Self::Remainder => a.checked_rem(b),
            Self::Least => Some(a.min(b)),
            Self::Greatest => Some(a.max(b)),
            Self::Less => Some(i64::from(a < b)),
            Self::AtMost => Some(i64::from(a <= b)),
            Self::Greater => Some(i64::from(a > b)),
            Self::AtLeast => Some(i64::from(a >= b)),
            Self::And | Self::Or | Self::Equal | Self::Unequal => None,
        };
        number.map_or(Datum::Null, Datum::Integer)
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    lookup: &'t dyn Fn(&str) -> Result<Expression, String>,
}

impl<'t> Parser<'t> {
    fn either(&mut self) -> Result<Expression, Fault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err((self.at, "the expression is nested too deeply".to_owned()));
        }
        let mut left = self.both()?;
        while self.word("or") {
            left = binary(Operator::Or, left, self.both()?);
        }
        self.depth -= 1;
        Ok(left)
    }

    fn both(&mut self) -> Result<Expression, Fault> {
        let mut left = self.denied()?;
        while self.word("and") {
            left = binary(Operator::And, left, self.denied()?);
        }
        Ok(left)
    }

    fn denied(&mut self) -> Result<Expression, Fault> {
        let mut times = 0;
        while self.word("not") {
            times += 1;
        }
        let mut operand = self.comparison()?;
        for _ in 0..times {
            operand = Expression::Not(Box::new(operand)).folded();
        }
        Ok(operand)
    }

    fn comparison(&mut self) -> Result<Expression, Fault> {
        const OPERATORS: [(&str, Operator); 6] = [
            ("!=", Operator::Unequal),
            ("<=", Operator::AtMost),
            (">=", Operator::AtLeast),
            ("=", Operator::Equal),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        let left = self.sum()?;
        for (sign, operator) in OPERATORS {
            if self.sign(sign) {
                return Ok(binary(operator, left, self.sum()?));
            }
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Expression, Fault> {
        let mut left = self.product()?;
        loop {
            let operator = if self.sign("+") {
                Operator::Add
            } else if self.sign("-") {
                Operator::Subtract
            } else {
                return Ok(left);
            };
            left = binary(operator, left, self.product()?);
        }
    }

    fn product(&mut self) -> Result<Expression, Fault> {
        let mut left = self.operand()?;
        loop {
            let operator = if self.sign("*") {
                Operator::Multiply
            } else if self.sign("/") {
                Operator::Divide
            } else if self.sign("%") {
                Operator::Remainder
            } else {
                return Ok(left);
            };
            left = binary(operator, left, self.operand()?);
        }
    }

    fn operand(&mut self) -> Result<Expression, Fault> {
        self.skip_blanks();
        let begin = self.at;
        if self.sign("(") {
            let inner = self.either()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.sign("-") {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err((self.at, "the expression is nested too deeply".to_owned()));
            }
            let operand = self.operand()?;
            self.depth -= 1;
            return Ok(binary(Operator::Subtract, Expression::number(0), operand));
        }
        if self.sign("'") {
            let rest = &self.text[self.at..];
            let Some(end) = rest.find('\'') else {
                return Err((begin, "this string has no end".to_owned()));
            };
            self.at += end + 1;
            return Ok(Expression::Constant(Datum::Text(rest[..end].to_owned())));
        }
        let word = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        match word.as_bytes() {
            [] if self.at >= self.text.len() => {
                Err((self.at, "the expression ends too early".to_owned()))
            }
            [] => Err((
                self.at,
                format!("'{}' is not understood here", self.shown()),
            )),
            [first, ..] if first.is_ascii_digit() => word
                .replace('_', "")
                .parse()
                .map(Expression::number)
                .map_err(|_| (begin, format!("'{word}' is no whole number of 64 bits"))),
            _ => self.named(word, begin),
        }
    }

    fn named(&mut self, word: &str, begin: usize) -> Result<Expression, Fault> {
        if word == "null" {
            return Ok(Expression::Constant(Datum::Null));
        }
        let operator = match word {
            "if" => None,
            "min" => Some(Operator::Least),
            "max" => Some(Operator::Greatest),
            _ => return (self.lookup)(word).map_err(|problem| (begin, problem)),
        };
        self.expect("(")?;
        let first = self.either()?;
        self.expect(",")?;
        let second = self.either()?;
        let expression = match operator {
            Some(operator) => binary(operator, first, second),
            None => {
                self.expect(",")?;
                let third = self.either()?;
                Expression::If(Box::new([first, second, third])).folded()
            }
        };
        self.expect(")")?;
        Ok(expression)
    }

    fn skip_blanks(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let text: &'t str = self.text;
        let rest = &text[self.at..];
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn sign(&mut self, sign: &str) -> bool {
        self.skip_blanks();
        let found = self.text[self.at..].starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    fn word(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let found = rest.strip_prefix(word).is_some_and(|after| {
            !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        });
        if found {
            self.at += word.len();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Fault> {
        if self.sign(sign) {
            Ok(())
        } else {
            Err((self.at, format!("'{sign}' is missing here")))
        }
    }

    fn shown(&self) -> String {
        self.text[self.at..].chars().take(12).collect()
    }
}

fn binary(operator: Operator, left: Expression, right: Expression) -> Expression {
    Expression::Binary(operator, Box::new(left), Box::new(right)).folded()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Expression, Fault> {
        Expression::parse(text, &|name| match name {
            "ten" => Ok(Expression::number(10)),
            "x" => Ok(Expression::Variable(0)),
            "y" => Ok(Expression::Variable(1)),
            other => Err(format!("unknown name '{other}'")),
        })
    }

    fn value(text: &str) -> Datum {
        let variables = [Datum::Integer(7), Datum::Text("BC".to_owned())];
        parse(text).expect(text).value(&variables)
    }

    #[test]
    fn reckons_as_people_do() {
        for (text, number) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("10 - 4 - 3", 3),
            ("7 / 2 * 2 + 7 % 2", 7),
            ("-x + 1", -6),
            ("1_000 * ten", 10_000),
            ("x = 7 and y = 'BC'", 1),
            ("x < 7 or y != 'BC'", 0),
            ("not x >= 8", 1),
            ("if(x > 5, min(x, 3), 0)", 3),
            ("max(x, ten)", 10),
            ("null = null", 1),
            ("null < 1", 0),
            ("1 / 0 = null", 1),
            ("y + 1 = null", 1),
            ("9223372036854775807 + 1 = null", 1),
            ("nothing_like(1) = 2", -1),
        ] {
            if number == -1 {
                assert!(parse(text).is_err(), "{text}");
            } else {
                assert_eq!(value(text), Datum::Integer(number), "{text}");
            }
        }
    }

    #[test]
    fn faults_are_placed() {
        for (text, at, told) in [
            ("", 0, "too early"),
            ("1 +", 3, "too early"),
            ("1 2", 2, "not understood"),
            ("1 + rows", 4, "unknown name 'rows'"),
            ("(1", 2, "')' is missing"),
            ("min(1)", 5, "',' is missing"),
            ("'abc", 0, "no end"),
            ("1 $ 2", 2, "not understood"),
            ("99999999999999999999", 0, "64 bits"),
        ] {
            let (place, problem) = parse(text).expect_err(text);
            assert_eq!(place, at, "{text}: {problem}");
            assert!(problem.contains(told), "{text}: {problem}");
        }
        assert!(parse(&"(".repeat(10_000)).is_err());
        assert!(parse(&"-".repeat(10_000)).is_err());
    }

    #[test]
    fn what_has_no_variables_is_reckoned_beforehand() {
        assert_eq!(
            parse("ten * 3 + 1").expect("parsed"),
            Expression::number(31)
        );
        assert_eq!(parse("x + 1").expect("parsed").constant(), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,40}") {
            let _ = parse(&text);
        }

        #[test]
        fn sums_and_products_are_those_of_the_numbers(a in -1_000_i64..1_000, b in -1_000_i64..1_000, c in 1_i64..1_000) {
            let text = format!("({a}) * ({b}) + ({a}) / {c} - ({b}) % {c}");
            prop_assert_eq!(value(&text), Datum::Integer(a * b + a / c - b % c));
        }
    }
}
