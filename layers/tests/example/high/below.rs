pub struct Deep;
