//! The places of a table's columns and keys in the server's buffers, and the engine's schema that follows from them.

use peregrine::row::{Column, ColumnType, Index, Key, KeyPart, SchemaNames, TableSchema};

use crate::c_types::{Code, ColumnDefinition, KeyDefinition, TableDefinition};
use crate::failure::{Failure, Outcome};
use crate::planted::{is_planted, Fault};

/// The first text of the data that the engine keeps with a table of the server.
///
/// The columns' types in SQL follow, each after a NUL. Then come the rest of each column's definition in CREATE TABLE,
/// and the rest of the table's. These are last, so that older programs find the types in their old place.
const TYPES_FOLLOW: &str = "MariaDB";

/// The form of a column in the record buffer; see `peregrine_column_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Little-endian two's complement.
    Signed,
    /// Little-endian.
    Unsigned,
    /// 4 bytes.
    Float,
    /// 8 bytes.
    Double,
    /// Bytes ordered by memcmp.
    Fixed,
    /// Bytes filled up with a pad character.
    Padded,
    /// Length bytes, then bytes.
    Variable,
    /// Length bytes, then a pointer.
    Blob,
    /// Not stored.
    Absent,
}

/// A column of the record buffer.
#[derive(Clone, Debug)]
pub struct ColumnLayout {
    /// The column's form.
    pub kind: Kind,
    /// Offset of its bytes in the record.
    pub offset: usize,
    /// Number of its bytes; for a variable column, the most bytes after the length bytes.
    pub length: usize,
    /// Bytes of the length of a variable column or blob.
    pub length_bytes: usize,
    /// The byte with the null bit.
    pub null_offset: usize,
    /// The null bit's mask; 0 when the column is NOT NULL.
    pub null_bit: u8,
    /// The pad character, big-endian in the first `pad_length` bytes.
    pub pad: [u8; 4],
    /// Its length.
    pub pad_length: usize,
    /// The engine's column number; `None` for [`Kind::Absent`].
    pub stored_as: Option<usize>,
}

/// A part of a key image.
#[derive(Clone, Debug)]
pub struct KeyPartLayout {
    /// The server's column number.
    pub column: usize,
    /// Bytes of the value in the image, without the null byte and length bytes.
    pub length: usize,
    /// The most bytes of its sort key, when the column has a collation.
    pub sort_length: usize,
}

impl KeyPartLayout {
    /// Bytes that the part takes in an image.
    pub fn image_length(&self, column: &ColumnLayout) -> usize {
        let null = usize::from(column.null_bit != 0);
        match column.kind {
            Kind::Variable | Kind::Blob => null + 2 + self.length,
            _ => null + self.length,
        }
    }
}

/// A key.
#[derive(Clone, Debug)]
pub struct KeyLayout {
    /// The engine's number of the index.
    pub index: usize,
    /// The parts of an image: the key's own parts, then those that the server appends from the clustered key.
    pub parts: Vec<KeyPartLayout>,
    /// Number of the key's own parts.
    pub own: usize,
    /// The numbers of the parts that hold the clustered key's columns, up to the first column that this key's images
    /// lack.
    ///
    /// In the engine's keys these columns follow the key's own parts.
    pub clustered: Vec<usize>,
}

/// The data needed to translate rows and keys of a table.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The server's columns.
    pub columns: Vec<ColumnLayout>,
    /// The server's number of each of the engine's columns.
    pub stored: Vec<usize>,
    /// The server's keys.
    pub keys: Vec<KeyLayout>,
    /// For each of the engine's indexes, the server's number of its key; `u32::MAX` for the hidden row id.
    pub key_of_index: Vec<u32>,
    /// Bytes of a record.
    pub record_length: usize,
    /// A record with the bytes of each column where it is NULL: the server compares these bytes, too.
    pub nulls: Vec<u8>,
    /// Words of a column bitmap.
    pub bitmap_length: usize,
}

impl Layout {
    /// Reads the server's definition; returns the layout of a new table with this definition, and the engine's schema.
    ///
    /// See [`Layout::find_indexes`] for an existing table.
    ///
    /// # Safety
    /// The pointers of `definition`, and those in what they point to, must be valid for the
    /// counts and lengths beside them; `nulls` for a record.
    pub unsafe fn read(definition: &TableDefinition) -> Outcome<(Layout, TableSchema)> {
        if definition.columns.is_null() || definition.column_count == 0 {
            return Err(Failure::argument("a table without columns"));
        }
        if definition.keys.is_null() && definition.key_count != 0 {
            return Err(Failure::argument("keys"));
        }
        // SAFETY: not null, and valid for the count by the caller's promise.
        let columns = unsafe {
            std::slice::from_raw_parts(definition.columns, definition.column_count as usize)
        };
        let keys = if definition.key_count == 0 {
            &[]
        } else {
            // SAFETY: as above.
            unsafe { std::slice::from_raw_parts(definition.keys, definition.key_count as usize) }
        };
        let record_length = definition.record_length as usize;
        if definition.nulls.is_null() {
            return Err(Failure::argument("a record of NULLs"));
        }
        // SAFETY: not null, and a record by the caller's promise.
        let nulls = unsafe { std::slice::from_raw_parts(definition.nulls, record_length) };

        let mut layout = Layout {
            columns: Vec::with_capacity(columns.len()),
            stored: Vec::with_capacity(columns.len()),
            keys: Vec::with_capacity(keys.len()),
            key_of_index: vec![u32::MAX],
            record_length,
            nulls: nulls.to_vec(),
            bitmap_length: columns.len().div_ceil(64),
        };
        let mut schema = TableSchema::default();
        let mut types = vec![TYPES_FOLLOW.to_owned()];
        let mut rests = Vec::new();
        for column in columns {
            let stored_as = layout.stored.len();
            let placed = place(column, stored_as, record_length)?;
            if let Some(ty) = column_type(&placed)? {
                layout.stored.push(layout.columns.len());
                // SAFETY: the name is valid for its length by the caller's promise.
                let name = unsafe { text(column.name, column.name_length)? };
                let mut stored = Column::new(name, ty).collation(column.collation);
                stored.nullable = placed.null_bit != 0;
                schema.columns.push(stored);
                // SAFETY: the type is valid for its length by the caller's promise.
                types.push(unsafe { text(column.type_text, column.type_length)? });
                // SAFETY: as the type.
                let rest = unsafe { text(column.rest, column.rest_length)? };
                rests.push(rest.replace('\0', ""));
            }
            layout.columns.push(placed);
        }
        if definition.rest_length > 0 {
            types.extend(rests);
            // SAFETY: the rest is valid for its length by the caller's promise.
            types.push(unsafe { text(definition.rest, definition.rest_length)? });
        }
        schema.user = types.join("\0").into_bytes();
        for (number, key) in keys.iter().enumerate() {
            // SAFETY: the parts are valid for their count by the caller's promise.
            let (parts, mut engine_parts) = unsafe { read_parts(key, &layout)? };
            let own = key.part_count as usize;
            engine_parts.truncate(own);
            let index = if definition.primary as usize == number {
                schema.primary = Some(Key {
                    parts: engine_parts,
                });
                layout.key_of_index[0] = number as u32;
                0
            } else {
                schema.indexes.push(Index {
                    // SAFETY: the name is valid for its length by the caller's promise.
                    name: unsafe { text(key.name, key.name_length)? },
                    parts: engine_parts,
                    unique: key.unique != 0 && !is_planted(Fault::UncheckedKey),
                });
                layout.key_of_index.push(number as u32);
                schema.indexes.len()
            };
            layout.keys.push(KeyLayout {
                index,
                parts,
                own,
                clustered: Vec::new(),
            });
        }
        layout.find_clustered_parts();
        Ok((layout, schema))
    }

    /// Assigns to each key the engine's index with the same entries; `server` is the schema that was read with the
    /// layout.
    ///
    /// Indexes match by their parts and uniqueness, because the server may change the order and names of keys without
    /// the engine. Returns false when the engine's schema does not match the server's definition.
    pub fn find_indexes(&mut self, engine: &TableSchema, server: &TableSchema) -> bool {
        if !same_columns(engine, server)
            || engine.primary != server.primary
            || engine.indexes.len() != server.indexes.len()
        {
            return false;
        }
        let mut left: Vec<usize> = (0..engine.indexes.len()).collect();
        let mut key_of_index = self.key_of_index.clone();
        for (wanted, &key) in server.indexes.iter().zip(&self.key_of_index[1..]) {
            // Indexes with the same parts and uniqueness are interchangeable.
            let found = left.iter().position(|&n| {
                let index = &engine.indexes[n];
                index.parts == wanted.parts && index.unique == wanted.unique
            });
            let Some(found) = found else {
                return false;
            };
            let index = left.remove(found) + 1;
            self.keys[key as usize].index = index;
            key_of_index[index] = key;
        }
        self.key_of_index = key_of_index;
        true
    }

    /// Returns the server's names in the order of the engine's columns and indexes.
    ///
    /// `server` is as for [`Layout::find_indexes`], which must have succeeded before.
    pub fn names(&self, server: &TableSchema) -> SchemaNames {
        let mut indexes = vec![String::new(); server.indexes.len()];
        let secondary = self.keys.iter().filter(|key| key.index != 0);
        for (key, index) in secondary.zip(&server.indexes) {
            indexes[key.index - 1].clone_from(&index.name);
        }
        let columns = server.columns.iter();
        SchemaNames {
            columns: columns.map(|column| column.name.clone()).collect(),
            indexes,
        }
    }

    fn find_clustered_parts(&mut self) {
        let primary = self.keys.get(self.key_of_index[0] as usize);
        let columns: Vec<usize> = primary
            .map(|key| key.parts.iter().map(|part| part.column).collect())
            .unwrap_or_default();
        for key in self.keys.iter_mut().filter(|key| key.index != 0) {
            key.clustered = columns
                .iter()
                .map_while(|&c| key.parts.iter().position(|part| part.column == c))
                .collect();
        }
    }

    /// Returns a key by the server's number.
    pub fn key(&self, number: u32) -> Outcome<&KeyLayout> {
        self.keys
            .get(number as usize)
            .ok_or_else(|| Failure::argument("number of a key"))
    }
}

/// Copies a short text of the server.
///
/// # Safety
/// `text` must be null or valid for `length` bytes.
pub unsafe fn text(text: *const std::ffi::c_char, length: u32) -> Outcome<String> {
    if text.is_null() || length == 0 {
        return Ok(String::new());
    }
    // SAFETY: not null, and valid for `length` by the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length as usize) };
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// Decodes a `peregrine_column_kind`.
pub(crate) fn kind(number: u32) -> Outcome<Kind> {
    Ok(match number {
        0 => Kind::Signed,
        1 => Kind::Unsigned,
        2 => Kind::Float,
        3 => Kind::Double,
        4 => Kind::Fixed,
        5 => Kind::Padded,
        6 => Kind::Variable,
        7 => Kind::Blob,
        8 => Kind::Absent,
        _ => return Err(Failure::argument("kind of a column")),
    })
}

fn place(c: &ColumnDefinition, stored_as: usize, record_length: usize) -> Outcome<ColumnLayout> {
    let kind = kind(c.kind)?;
    let length = c.length as usize;
    let length_bytes = c.length_bytes as usize;
    let right = match kind {
        Kind::Signed | Kind::Unsigned => matches!(length, 1 | 2 | 3 | 4 | 8),
        Kind::Float => length == 4,
        Kind::Double => length == 8,
        Kind::Fixed | Kind::Absent => true,
        Kind::Padded => matches!(c.pad_length, 1 | 2 | 4) && length % c.pad_length as usize == 0,
        Kind::Variable => matches!(length_bytes, 1 | 2) && length < 1 << (8 * length_bytes),
        Kind::Blob => matches!(length_bytes, 1..=4),
    };
    let bytes = match kind {
        Kind::Variable => length_bytes + length,
        Kind::Blob => length_bytes + size_of::<*const u8>(),
        Kind::Absent => 0,
        _ => length,
    };
    if !right
        || c.offset as usize + bytes > record_length
        || c.null_offset as usize >= record_length
        || c.null_bit > 0x80
    {
        return Err(Failure::argument("place of a column in the record"));
    }
    let mut pad = [0; 4];
    if kind == Kind::Padded {
        let n = c.pad_length as usize;
        pad[..n].copy_from_slice(&c.pad.to_be_bytes()[4 - n..]);
    }
    Ok(ColumnLayout {
        kind,
        offset: c.offset as usize,
        length,
        length_bytes,
        null_offset: c.null_offset as usize,
        null_bit: c.null_bit as u8,
        pad,
        pad_length: c.pad_length as usize,
        stored_as: (kind != Kind::Absent).then_some(stored_as),
    })
}

fn column_type(c: &ColumnLayout) -> Outcome<Option<ColumnType>> {
    let bytes = u8::try_from(c.length).unwrap_or(0);
    let max = u32::try_from(c.length).map_err(|_| Failure::argument("length of a column"))?;
    Ok(Some(match c.kind {
        Kind::Signed => ColumnType::Int {
            bytes,
            signed: true,
        },
        Kind::Unsigned => ColumnType::Int {
            bytes,
            signed: false,
        },
        Kind::Float => ColumnType::Float,
        Kind::Double => ColumnType::Double,
        Kind::Fixed => ColumnType::Bytes { len: max },
        Kind::Padded | Kind::Variable => ColumnType::VarBytes { max },
        Kind::Blob => ColumnType::Large {
            max: (1 << (8 * c.length_bytes)) - 1,
        },
        Kind::Absent => return Ok(None),
    }))
}

/// # Safety
/// `key.parts` must be valid for `key.part_count`.
unsafe fn read_parts(
    key: &KeyDefinition,
    layout: &Layout,
) -> Outcome<(Vec<KeyPartLayout>, Vec<KeyPart>)> {
    let count = key.part_count.saturating_add(key.extra_count);
    if key.parts.is_null() || key.part_count == 0 || count > 64 {
        return Err(Failure::argument("parts of a key"));
    }
    // SAFETY: not null, and valid for the count by the caller's promise.
    let parts = unsafe { std::slice::from_raw_parts(key.parts, count as usize) };
    let mut placed = Vec::with_capacity(parts.len());
    let mut engine = Vec::with_capacity(parts.len());
    for part in parts {
        let column = part.column as usize;
        let stored = layout
            .columns
            .get(column)
            .and_then(|c| c.stored_as)
            .ok_or_else(|| {
                Failure::new(Code::Invalid, "a key needs a column that is not stored")
            })?;
        placed.push(KeyPartLayout {
            column,
            length: part.key_length as usize,
            sort_length: part.sort_length as usize,
        });
        engine.push(KeyPart {
            column: stored,
            prefix: (part.prefix != 0).then_some(part.prefix),
            descending: part.descending != 0,
        });
    }
    Ok((placed, engine))
}

/// Returns whether the engine's columns match the server's definition.
///
/// Names do not count, because the server may change them without the engine. A column that the server gives no
/// collation may have one in the engine, if no key has the column: older versions gave compressed columns a collation.
fn same_columns(engine: &TableSchema, server: &TableSchema) -> bool {
    let same = |column: usize| {
        let (a, b) = (&engine.columns[column], &server.columns[column]);
        let needs_none = b.collation == 0 && !is_in_a_key(engine, column);
        a.ty == b.ty && a.nullable == b.nullable && (a.collation == b.collation || needs_none)
    };
    engine.columns.len() == server.columns.len() && (0..engine.columns.len()).all(same)
}

fn is_in_a_key(schema: &TableSchema, column: usize) -> bool {
    let primary = schema.primary.iter().flat_map(|key| &key.parts);
    let others = schema.indexes.iter().flat_map(|index| &index.parts);
    primary.chain(others).any(|part| part.column == column)
}

#[cfg(test)]
mod tests;
