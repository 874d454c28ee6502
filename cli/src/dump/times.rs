//! Dates and times as the server stores them: bit fields that compare as bytes; or the digits as one number, in the
//! form before `mysql56_temporal_format`.
//!
//! A TIMESTAMP is written in UTC.

use jiff::tz::TimeZone;
use jiff::Timestamp;

/// DATE: day, month and year in 5, 4 and 15 bits.
pub fn date(stored: u64) -> Option<String> {
    let (day, month, year) = (stored & 31, stored >> 5 & 15, stored >> 9);
    (year <= 9999).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// TIME with so many digits of a fraction.
pub fn time(bytes: &[u8], digits: u32) -> Option<String> {
    let packed = packed(bytes, 3, digits)?;
    let sign = if packed < 0 { "-" } else { "" };
    let (whole, micros) = parts(packed.abs());
    let (hours, minutes, seconds) = (whole >> 12 & 0x3ff, whole >> 6 & 63, whole & 63);
    let fraction = fraction(micros, digits)?;
    is_clock(minutes, seconds)
        .then(|| format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}"))
}

/// DATETIME with so many digits of a fraction.
pub fn date_time(bytes: &[u8], digits: u32) -> Option<String> {
    let packed = packed(bytes, 5, digits)?;
    let (whole, micros) = parts(u64::try_from(packed).ok()?.cast_signed());
    let (date, time) = (whole >> 17, whole & 0x1_ffff);
    let (month, day) = ((date >> 5) % 13, date & 31);
    let year = (date >> 5) / 13;
    let (hours, minutes, seconds) = (time >> 12, time >> 6 & 63, time & 63);
    let fraction = fraction(micros, digits)?;
    (year <= 9999 && hours < 24 && is_clock(minutes, seconds)).then(|| {
        format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}{fraction}")
    })
}

/// TIMESTAMP with so many digits of a fraction.
pub fn timestamp(bytes: &[u8], digits: u32) -> Option<String> {
    let (seconds, rest) = bytes.split_at_checked(4)?;
    let seconds = big_endian(seconds);
    let micros = big_endian(rest) * micros_a_step(rest.len(), digits)?;
    let fraction = fraction(micros, digits)?;
    if (seconds, micros) == (0, 0) {
        return Some(format!("0000-00-00 00:00:00{fraction}"));
    }
    Some(timestamp_of_seconds(seconds.cast_unsigned())? + &fraction)
}

/// TIME in the older form: its digits.
pub fn time_of_digits(stored: i64) -> Option<String> {
    let sign = if stored < 0 { "-" } else { "" };
    let digits = stored.unsigned_abs();
    let (hours, minutes, seconds) = (digits / 10_000, digits / 100 % 100, digits % 100);
    Some(format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"))
}

/// DATETIME in the older form: its digits.
pub fn date_time_of_digits(stored: u64) -> Option<String> {
    let (date, time) = (stored / 1_000_000, stored % 1_000_000);
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    let (hours, minutes, seconds) = (time / 10_000, time / 100 % 100, time % 100);
    (year <= 9999)
        .then(|| format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}"))
}

/// TIMESTAMP in the older form: seconds since 1970.
pub fn timestamp_of_seconds(stored: u64) -> Option<String> {
    if stored == 0 {
        return Some("0000-00-00 00:00:00".into());
    }
    let time = Timestamp::from_second(i64::try_from(stored).ok()?).ok()?;
    let time = time.to_zoned(TimeZone::UTC);
    Some(time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// Returns the bit fields of a value with `whole` bytes and a fraction; the lowest 24 bits are microseconds.
///
/// The sign applies to the whole value.
fn packed(bytes: &[u8], whole: usize, digits: u32) -> Option<i64> {
    let (whole, rest) = bytes.split_at_checked(whole)?;
    let micros_a_step = micros_a_step(rest.len(), digits)?;
    let bits = 8 * whole.len() as u32;
    let whole = big_endian(whole) - (1 << (bits - 1));
    let fraction = big_endian(rest);
    // The fraction of a negative value counts upward from the next lower whole value.
    let borrowed = i64::from(whole < 0 && fraction != 0);
    let fraction = fraction - (borrowed << (8 * rest.len()));
    Some(((whole + borrowed) << 24) + fraction * micros_a_step)
}

/// Returns the bit fields above the microseconds, and the microseconds.
fn parts(packed: i64) -> (i64, i64) {
    (packed >> 24, packed & 0xff_ffff)
}

fn is_clock(minutes: i64, seconds: i64) -> bool {
    minutes < 60 && seconds < 60
}

/// Returns the microseconds of one step of a fraction of so many bytes; `None` if the digits need another number of
/// bytes.
fn micros_a_step(bytes: usize, digits: u32) -> Option<i64> {
    (digits.div_ceil(2) as usize == bytes).then_some(())?;
    [1_000_000, 10_000, 100, 1].get(bytes).copied()
}

/// Returns the digits after the seconds, with the point.
fn fraction(micros: i64, digits: u32) -> Option<String> {
    if !(0..1_000_000).contains(&micros) {
        return None;
    }
    let all = format!("{micros:06}");
    Some(match digits {
        0 => String::new(),
        digits => format!(".{}", all.get(..digits as usize)?),
    })
}

fn big_endian(bytes: &[u8]) -> i64 {
    bytes
        .iter()
        .fold(0, |value, byte| value << 8 | i64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_the_server_has_written_them() {
        let said = |text: &str| Some(text.to_owned());
        assert_eq!(date(1_036_381), said("2024-02-29"));
        assert_eq!(date(0), said("0000-00-00"));
        assert_eq!(time(b"\x7f\xef\xff\xec\x78", 3), said("-01:00:00.500"));
        assert_eq!(time(b"\x80\x00\x00", 0), said("00:00:00"));
        assert_eq!(time(b"\xb4\x6e\xfb", 0), said("838:59:59"));
        assert_eq!(
            time(b"\x7f\xff\xff\xff\xff\xff", 6),
            said("-00:00:00.000001")
        );
        assert_eq!(time(b"\x7f\xff\xff\xf6", 1), said("-00:00:00.1"));
        let bytes = b"\x99\x7d\x3c\x77\x80\x01\xe2\x40";
        assert_eq!(date_time(bytes, 6), said("2007-09-30 07:30:00.123456"));
        assert_eq!(date_time(b"\x80\0\0\0\0", 0), said("0000-00-00 00:00:00"));
        assert_eq!(timestamp(b"\0\0\0\0\0", 1), said("0000-00-00 00:00:00.0"));
        assert_eq!(
            timestamp(b"\x7f\xff\xff\xff", 0),
            said("2038-01-19 03:14:07")
        );
        assert_eq!(
            timestamp(b"\0\0\0\x01\x04\xd2", 4),
            said("1970-01-01 00:00:01.1234")
        );
        assert_eq!(time_of_digits(-8_385_959), said("-838:59:59"));
        assert_eq!(
            date_time_of_digits(20_070_930_073_000),
            said("2007-09-30 07:30:00")
        );
        assert_eq!(timestamp_of_seconds(0), said("0000-00-00 00:00:00"));
    }

    #[test]
    fn bytes_that_are_no_times_are_none() {
        assert_eq!(date(u64::MAX), None);
        assert_eq!(time(b"\x80\x00", 0), None);
        assert_eq!(time(b"\x80\x00\x00\x00", 0), None);
        assert_eq!(time(b"\x80\x00\x3f", 0), None);
        assert_eq!(time(b"\x80\x00\x00\xff", 2), None);
        assert_eq!(date_time(b"\0\0\0\0\0", 0), None);
        assert_eq!(date_time(b"\xff\xff\xff\xff\xff", 0), None);
        assert_eq!(timestamp(b"\0\0\0", 0), None);
        assert_eq!(timestamp(b"\0\0\0\x01\xff\xff", 4), None);
        assert_eq!(date_time_of_digits(u64::MAX), None);
    }
}
