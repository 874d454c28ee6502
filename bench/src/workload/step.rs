//! A step of a transaction: a statement, or a block of steps.

use super::values::expression::{Expression, Slot};
use super::values::generator::Draw;

/// A step.
#[derive(Debug, Clone)]
pub enum Step {
    /// A statement.
    Ask(Box<Ask>),
    /// Steps that are repeated or conditional.
    Block(Box<Block>),
}

/// A statement.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// The index of the workload's statement.
    ///
    /// For a statement about a whole list, the index of the variant for one row; those for more rows follow it.
    pub statement: usize,
    /// Variables drawn before it.
    pub draws: Vec<Draw>,
    /// Its parameters.
    pub parameters: Vec<Expression>,
    /// The variables that receive the columns of a row of the answer.
    pub into: Vec<Slot>,
    /// The values of the columns before those, which identify the answer's row for each row of a list.
    ///
    /// Empty if the statement is not about a list.
    pub by: Vec<Expression>,
    /// The row of the answer, if one row is for the whole statement.
    pub pick: Pick,
    /// The minimum and maximum number of rows of the answer.
    pub rows: Option<(Expression, Expression)>,
    /// The required value of the first column of the answer's first row.
    pub answer: Option<Expression>,
    /// The rows of values that it sends, if it sends several.
    pub batch: Option<Batch>,
    /// Whether an empty answer (or one without a row for a row of the list) ends the transaction with a rollback.
    pub ends_if_empty: bool,
}

/// Rows of values that one statement sends to the server.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The rounds: there is one row for each.
    pub rounds: Rounds,
    /// The variable with the number of the row, from 1.
    pub counter: Option<Slot>,
    /// Variables drawn for each row.
    pub draws: Vec<Draw>,
    /// The parameters of each row.
    pub parameters: Vec<Expression>,
    /// The parameters after the rows.
    pub behind: Vec<Expression>,
}

/// The rounds of a block or batch.
#[derive(Debug, Clone)]
pub enum Rounds {
    /// This many rounds.
    Number(Expression),
    /// One round for each row of the transaction's list with this number.
    List(usize),
}

impl Rounds {
    /// Returns the number of the list, if the rounds are for a list.
    #[must_use]
    pub fn list(&self) -> Option<usize> {
        match self {
            Self::Number(_) => None,
            Self::List(list) => Some(*list),
        }
    }
}

/// The row of an answer that is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pick {
    /// The first row.
    #[default]
    First,
    /// The middle row; of an even number of rows, the first of the two in the middle.
    Middle,
}

/// A group of steps.
#[derive(Debug, Clone)]
pub struct Block {
    /// The rounds of the steps.
    pub rounds: Rounds,
    /// The variable with the number of the round, from 1.
    pub counter: Option<Slot>,
    /// The condition, evaluated before each round.
    pub when: Option<Expression>,
    /// Variables drawn at the beginning of each round.
    pub draws: Vec<Draw>,
    /// The steps of each round.
    pub steps: Vec<Step>,
}
