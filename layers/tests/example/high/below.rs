use crate::Root as Renamed;

pub struct Deep;

impl Renamed {}
