//! What buckets are asked for: an object, a listing, and an object by somebody who is slow.

use crate::failure::Broken;
use crate::objects::bucket::LookedUp;
use crate::objects::failures::broken;
use crate::objects::life::{Life, Reading};

impl Life<'_> {
    pub(super) fn get(&mut self, number: u32) -> Result<(), Broken> {
        let key = if self.run.dice.once_in(4) { self.key() } else { self.found_key(number) };
        let expected = self.held(number, &key);
        let Some(bucket) = self.bucket(number) else { return Ok(()) };
        let found = bucket.get(&key).map_err(|error| broken("a get", &error))?;
        if found != expected {
            let key = String::from_utf8_lossy(&key);
            let what = format!("bucket {number}: a get of {key} gives other bytes than were put");
            return Err(Broken::Objects { what });
        }
        let keys = bucket.keys().map_err(|error| broken("a listing", &error))?;
        if !keys.iter().eq(self.living(number).keys()) {
            let what = format!("bucket {number}: a listing gives {} keys", keys.len());
            return Err(Broken::Objects { what });
        }
        Ok(())
    }

    pub(super) fn begin_reading(&mut self, number: u32) -> Result<(), Broken> {
        self.end_reading()?;
        let key = self.found_key(number);
        let (Some(bucket), Some(object)) = (self.bucket(number), self.held(number, &key)) else {
            return Ok(()); // There is nothing to read.
        };
        let found = bucket.reader(&key).map_err(|error| broken("a look-up", &error))?;
        let reading = |found: LookedUp| {
            let (reader, bytes) = (found.reader, object.bytes);
            Reading { bucket: number, reader, bytes }
        };
        self.reading = found.map(reading);
        Ok(())
    }

    /// What was read slowly is what the object held when the reading began.
    pub(super) fn end_reading(&mut self) -> Result<(), Broken> {
        let Some(Reading { bucket, mut reader, bytes }) = self.reading.take() else {
            return Ok(()); // Nobody reads.
        };
        let mut found = vec![0; bytes.len() + 1];
        let read = reader(0, &mut found);
        let length = read.map_err(|error| broken("a slow get", &error))?;
        if found[..length] != bytes[..] {
            let what = format!("bucket {bucket}: a slow get gives other bytes than were put");
            return Err(Broken::Objects { what });
        }
        Ok(())
    }

    /// The bucket is closed.
    pub(super) fn close(&mut self, number: u32) -> Result<(), Broken> {
        if self.reading.as_ref().is_some_and(|reading| reading.bucket == number) {
            self.end_reading()?;
        }
        drop(self.store.buckets.remove(&number));
        Ok(())
    }
}
