// strftime over a moment of local time, in English, as the C locale has it.

use std::fmt::Write;

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

struct Moment {
    year: i64,
    month: i64, // 1 to 12
    day: i64,   // 1 to 31
    hour: i64,
    minute: i64,
    second: i64,
    weekday: i64, // 0 is Sunday
    yearday: i64, // 0 to 365
}

impl Moment {
    /// From seconds since 1970-01-01 00:00, in the proleptic Gregorian calendar.
    fn new(seconds: i64) -> Self {
        let days = seconds.div_euclid(86_400);
        let rest = seconds.rem_euclid(86_400);
        // Years begin in March here, so that the leap day is a year's last; 400 years are 146,097 days.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month as usize - 1];
        Self {
            year,
            month,
            day,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: (days + 4).rem_euclid(7),
            yearday: before + day - 1 + i64::from(leap && month > 2),
        }
    }

    /// The year and week that the day's Thursday lies in.
    fn iso_week(&self) -> (i64, i64) {
        let ends_on = |year: i64| {
            (year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400)).rem_euclid(7) // 4 is Thursday
        };
        let weeks_of = |year: i64| if ends_on(year) == 4 || ends_on(year - 1) == 3 { 53 } else { 52 };
        let from_monday = (self.weekday + 6) % 7;
        match (self.yearday - from_monday + 10) / 7 {
            0 => (self.year - 1, weeks_of(self.year - 1)),
            week if week > weeks_of(self.year) => (self.year + 1, 1),
            week => (self.year, week),
        }
    }

    fn hour_of_twelve(&self) -> i64 {
        (self.hour + 11) % 12 + 1
    }
}

/// What `pattern` gives at a moment; a directive that isn't known stays as it stands.
pub fn strftime(pattern: &str, seconds: i64) -> String {
    let moment = Moment::new(seconds);
    let mut out = String::with_capacity(pattern.len() * 2);
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        // `-` drops the padding, `_` and `0` choose it, `^` asks for capitals.
        let flag = rest.chars().next().filter(|c| "-_0^".contains(*c));
        let directive = rest[flag.map_or(0, char::len_utf8)..].chars().next();
        let written = directive.is_some_and(|directive| write_directive(&moment, flag, directive, &mut out));
        let size = flag.map_or(0, char::len_utf8) + directive.map_or(0, char::len_utf8);
        if !written {
            out.push('%');
            out.push_str(&rest[..size]);
        }
        rest = &rest[size..];
    }
    out + rest
}

fn write_directive(moment: &Moment, flag: Option<char>, directive: char, out: &mut String) -> bool {
    let mut number = |value: i64, width: usize, pad: char| {
        let pad = match flag {
            Some('_') => ' ',
            Some('0') => '0',
            _ => pad,
        };
        let written = match (flag, pad) {
            (Some('-'), _) => write!(out, "{value}"),
            (_, '0') => write!(out, "{value:0width$}"),
            _ => write!(out, "{value:width$}"),
        };
        written.expect("a string takes all");
    };
    match directive {
        'Y' => number(moment.year, 1, '0'),
        'C' => number(moment.year.div_euclid(100), 2, '0'),
        'y' => number(moment.year.rem_euclid(100), 2, '0'),
        'm' => number(moment.month, 2, '0'),
        'd' => number(moment.day, 2, '0'),
        'e' => number(moment.day, 2, ' '),
        'H' => number(moment.hour, 2, '0'),
        'k' => number(moment.hour, 2, ' '),
        'I' => number(moment.hour_of_twelve(), 2, '0'),
        'l' => number(moment.hour_of_twelve(), 2, ' '),
        'M' => number(moment.minute, 2, '0'),
        'S' => number(moment.second, 2, '0'),
        'f' => number(0, 6, '0'),
        'j' => number(moment.yearday + 1, 3, '0'),
        'u' => number((moment.weekday + 6) % 7 + 1, 1, '0'),
        'w' => number(moment.weekday, 1, '0'),
        'G' => number(moment.iso_week().0, 1, '0'),
        'V' => number(moment.iso_week().1, 2, '0'),
        'U' => number((moment.yearday + 7 - moment.weekday) / 7, 2, '0'),
        'W' => number((moment.yearday + 7 - (moment.weekday + 6) % 7) / 7, 2, '0'),
        _ => return write_text(moment, flag, directive, out),
    }
    true
}

fn write_text(moment: &Moment, flag: Option<char>, directive: char, out: &mut String) -> bool {
    let day = DAYS[moment.weekday as usize];
    let month = MONTHS[moment.month as usize - 1];
    let half = if moment.hour < 12 { "AM" } else { "PM" };
    let compound = |pattern: &str| strftime_of(moment, pattern);
    let text = match directive {
        'A' => day.to_string(),
        'a' => day[..3].to_string(),
        'B' => month.to_string(),
        'b' | 'h' => month[..3].to_string(),
        'p' => half.to_string(),
        'P' => half.to_lowercase(),
        'c' => compound("%a %b %e %H:%M:%S %Y"),
        'D' | 'x' => compound("%m/%d/%y"),
        'F' => compound("%Y-%m-%d"),
        'R' => compound("%H:%M"),
        'r' => compound("%I:%M:%S %p"),
        'T' | 'X' => compound("%H:%M:%S"),
        'n' => "\n".into(),
        't' => "\t".into(),
        'z' | 'Z' => String::new(), // a local time that knows no zone
        '%' => "%".into(),
        _ => return false,
    };
    out.push_str(&if flag == Some('^') { text.to_uppercase() } else { text });
    true
}

/// A pattern of known directives, without flags.
fn strftime_of(moment: &Moment, pattern: &str) -> String {
    let mut out = String::new();
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        match (c, c == '%') {
            (_, true) => {
                let directive = characters.next().unwrap_or('%');
                write_directive(moment, None, directive, &mut out);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::strftime;

    #[test]
    fn a_known_moment() {
        let moment = 1_709_209_805; // 2024-02-29 12:30:05, a Thursday
        assert_eq!(strftime("%d %b %Y", moment), "29 Feb 2024");
        assert_eq!(strftime("%A, %B %-d, %Y %I:%M:%S %p", moment), "Thursday, February 29, 2024 12:30:05 PM");
        assert_eq!(
            strftime("%F %T %j %U %W %u %w %y %e|%^a|%%|%q|%", moment),
            "2024-02-29 12:30:05 060 08 09 4 4 24 29|THU|%|%q|%"
        );
        assert_eq!(strftime("%Y-%m-%d %H", -1), "1969-12-31 23");
        assert_eq!(strftime("%G-%V", moment), "2024-09");
        assert_eq!(strftime("%G-%V", 1_483_228_800), "2016-52"); // 2017-01-01
        assert_eq!(strftime("%G-%V", 1_735_603_200), "2025-01"); // 2024-12-31
        assert_eq!(strftime("%G-%V", 1_609_459_200), "2020-53"); // 2021-01-01
        assert_eq!(strftime("%c", 0), "Thu Jan  1 00:00:00 1970");
    }
}
