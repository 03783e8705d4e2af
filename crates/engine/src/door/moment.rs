//! Moments as people read them: in UTC, so that they mean the same wherever they are read.

const DAY_SECONDS: u64 = 24 * 60 * 60;
/// Days of 400 years, after which the calendar repeats.
const ERA_DAYS: u64 = 146_097;
/// From the first of March of the year 0 to the first of January of 1970.
const EPOCH_DAY: u64 = 719_468;

/// `2026-11-22 04:49:06`, from seconds since 1970.
#[must_use]
pub fn utc(unix_s: u64) -> String {
    let (year, month, day) = date_of(unix_s / DAY_SECONDS);
    let seconds = unix_s % DAY_SECONDS;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Year, month and day, from days since 1970. Years are counted from March, so that the day that
/// only some years have is the last.
fn date_of(unix_day: u64) -> (u64, u64, u64) {
    let days = unix_day + EPOCH_DAY;
    let (era, day_of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Five months have 153 days, whichever of the two rows of them since March.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::{date_of, utc};

    #[test]
    fn moments_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_827_696), "2000-02-29 12:34:56");
        assert_eq!(utc(1_000_000_000), "2001-09-09 01:46:40");
        assert_eq!(utc(4_107_542_399), "2100-02-28 23:59:59");
        assert_eq!(utc(4_107_542_400), "2100-03-01 00:00:00");
    }

    #[test]
    fn days_follow_each_other_as_in_a_calendar_that_counts() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for unix_day in 0..200_000 {
            assert_eq!(date_of(unix_day), (year, month, day), "{unix_day}");
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + u64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }
}
