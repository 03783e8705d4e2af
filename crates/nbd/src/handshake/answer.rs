//! The replies to one option, in the order in which they are made.

use super::choice::NotServed;
use crate::wire::option::{
    REP_ACK, REP_ERR_INVALID, REP_ERR_POLICY, REP_ERR_SHUTDOWN, REP_ERR_UNKNOWN, REP_INFO,
    REP_META_CONTEXT, reply,
};

/// The replies to one option.
pub(super) struct Answer<'a> {
    pub(super) option: u32,
    pub(super) out: &'a mut Vec<u8>,
}

impl Answer<'_> {
    pub(super) fn reply(&mut self, kind: u32, data: &[&[u8]]) {
        reply(self.out, self.option, kind, data);
    }

    pub(super) fn acknowledge(&mut self) {
        self.reply(REP_ACK, &[]);
    }

    pub(super) fn info(&mut self, fact: u16, parts: &[&[u8]]) {
        self.reply(REP_INFO, &[&fact.to_be_bytes(), &parts.concat()]);
    }

    pub(super) fn meta_context(&mut self, id: u32, context: &str) {
        self.reply(REP_META_CONTEXT, &[&id.to_be_bytes(), context.as_bytes()]);
    }

    pub(super) fn fail(&mut self, kind: u32, sentence: &str) {
        self.reply(kind, &[sentence.as_bytes()]);
    }

    pub(super) fn malformed(&mut self) {
        self.fail(REP_ERR_INVALID, "the data of the option are malformed");
    }

    pub(super) fn not_served(&mut self, why: NotServed) {
        let kind = match why {
            NotServed::Unknown | NotServed::Several => REP_ERR_UNKNOWN,
            NotServed::Closing => REP_ERR_SHUTDOWN,
            NotServed::Full { .. } => REP_ERR_POLICY,
        };
        self.fail(kind, &why.to_string());
    }
}
