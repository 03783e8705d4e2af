//! What buckets are asked for: an object, a listing, and an object by somebody who is slow.

use crate::failure::Broken;
use crate::objects::failures::broken;
use crate::objects::life::{Life, Reading};

impl Life<'_> {
    pub(super) fn get(&mut self, number: u32) -> Result<(), Broken> {
        let key = if self.run.dice.once_in(4) { self.key() } else { self.found_key(number) };
        let expected = self.held(number, &key);
        let Some(bucket) = self.bucket(number) else { return Ok(()) };
        let found = bucket.get(&key).map_err(|error| broken("a get", &error))?;
        if found.as_deref() != expected.as_deref() {
            let key = String::from_utf8_lossy(&key);
            let what = format!("bucket {number}: a get of {key} gives other bytes than were put");
            return Err(Broken::Objects { what });
        }
        let keys = bucket.keys().map_err(|error| broken("a listing", &error))?;
        let listed = self.run.history.now().buckets.get(&number).into_iter().flatten();
        if !keys.iter().eq(listed.map(|(key, _)| key)) {
            let what = format!("bucket {number}: a listing gives {} keys", keys.len());
            return Err(Broken::Objects { what });
        }
        Ok(())
    }

    pub(super) fn begin_reading(&mut self, number: u32) -> Result<(), Broken> {
        self.end_reading()?;
        let key = self.found_key(number);
        let (Some(bucket), Some(bytes)) = (self.bucket(number), self.held(number, &key)) else {
            return Ok(()); // There is nothing to read.
        };
        let reader = bucket.reader(&key).map_err(|error| broken("a look-up", &error))?;
        self.reading = reader.map(|(_, reader)| Reading { bucket: number, reader, bytes });
        Ok(())
    }

    /// What was read slowly is what the object held when the reading began.
    pub(super) fn end_reading(&mut self) -> Result<(), Broken> {
        let Some(Reading { bucket, mut reader, bytes }) = self.reading.take() else {
            return Ok(()); // Nobody reads.
        };
        let mut found = vec![0; bytes.len() + 1];
        let read = reader(&mut found);
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
