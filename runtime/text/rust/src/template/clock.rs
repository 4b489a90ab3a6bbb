//! A point in time and Python's strftime of it. The time is given, so that a rendering can be repeated.

/// Civil date and time, without a zone.
#[derive(Clone, Copy)]
pub struct Clock {
    year: i32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
}

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
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const DAYS_BEFORE: [u32; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

impl Clock {
    /// Reads `2031-03-07T08:09:10`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no time of the form 2031-03-07T08:09:10");
        let bytes = text.as_bytes();
        if bytes.len() != 19
            || [4, 7].iter().any(|at| bytes[*at] != b'-')
            || [13, 16].iter().any(|at| bytes[*at] != b':')
        {
            return Err(wrong());
        }
        if !matches!(bytes[10], b'T' | b' ') {
            return Err(wrong());
        }
        let number = |from: usize, to: usize| -> Result<u32, String> {
            let digits = text.get(from..to).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
            digits.and_then(|digits| digits.parse().ok()).ok_or_else(wrong)
        };
        let clock = Self {
            year: number(0, 4)? as i32,
            month: number(5, 7)?,
            day: number(8, 10)?,
            hour: number(11, 13)?,
            minute: number(14, 16)?,
            second: number(17, 19)?,
        };
        let valid = (1..=12).contains(&clock.month)
            && (1..=31).contains(&clock.day)
            && clock.hour < 24
            && clock.minute < 60
            && clock.second < 61;
        if valid { Ok(clock) } else { Err(wrong()) }
    }

    fn is_leap(&self) -> bool {
        (self.year % 4 == 0 && self.year % 100 != 0) || self.year % 400 == 0
    }

    fn day_of_year(&self) -> u32 {
        DAYS_BEFORE[self.month as usize - 1] + self.day + (self.month > 2 && self.is_leap()) as u32
    }

    /// 0 is Sunday.
    fn weekday(&self) -> u32 {
        let before = i64::from(self.year) - 1;
        let days = before * 365 + before / 4 - before / 100 + before / 400 + i64::from(self.day_of_year());
        days.rem_euclid(7) as u32
    }

    pub fn format(&self, format: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = format.chars();
        while let Some(c) = rest.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let mut code = rest.next();
            let bare = code == Some('-'); // no leading zero
            if bare {
                code = rest.next();
            }
            let code = code.ok_or("a time format ends with %")?;
            let part = self.part(code)?;
            out.push_str(if bare && part.len() > 1 { part.trim_start_matches('0') } else { &part });
        }
        Ok(out)
    }

    fn part(&self, code: char) -> Result<String, String> {
        let hour12 = (self.hour + 11) % 12 + 1;
        let (yday, wday) = (self.day_of_year(), self.weekday());
        let day = DAYS[wday as usize];
        let month = MONTHS[self.month as usize - 1];
        Ok(match code {
            'A' => day.into(),
            'a' => day[..3].into(),
            'B' => month.into(),
            'b' | 'h' => month[..3].into(),
            'C' => format!("{:02}", self.year / 100),
            'c' => format!("{} {} {:2} {} {}", &day[..3], &month[..3], self.day, self.part('T')?, self.year),
            'D' | 'x' => format!("{:02}/{:02}/{:02}", self.month, self.day, self.year % 100),
            'd' => format!("{:02}", self.day),
            'e' => format!("{:2}", self.day),
            'F' => format!("{}-{:02}-{:02}", self.year, self.month, self.day),
            'f' => "000000".into(),
            'H' => format!("{:02}", self.hour),
            'I' => format!("{hour12:02}"),
            'j' => format!("{yday:03}"),
            'M' => format!("{:02}", self.minute),
            'm' => format!("{:02}", self.month),
            'n' => "\n".into(),
            'p' => if self.hour < 12 { "AM" } else { "PM" }.into(),
            'R' => format!("{:02}:{:02}", self.hour, self.minute),
            'S' => format!("{:02}", self.second),
            'T' | 'X' => format!("{:02}:{:02}:{:02}", self.hour, self.minute, self.second),
            't' => "\t".into(),
            'U' => format!("{:02}", (yday + 6 - wday) / 7),
            'u' => if wday == 0 { 7 } else { wday }.to_string(),
            'W' => format!("{:02}", (yday + 6 - (wday + 6) % 7) / 7),
            'w' => wday.to_string(),
            'Y' => self.year.to_string(),
            'y' => format!("{:02}", self.year % 100),
            'Z' | 'z' => String::new(),
            '%' => "%".into(),
            other => return Err(format!("the time format %{other} is not known")),
        })
    }
}
