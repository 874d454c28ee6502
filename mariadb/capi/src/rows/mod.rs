//! The server's record buffers and key images as the engine's values, and back.

pub mod collation;
pub mod key_image;
pub mod layout;
pub mod record;
