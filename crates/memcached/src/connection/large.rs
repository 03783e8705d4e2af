//! A request whose value comes in parts, and what it has to remember meanwhile.

use crate::operation::{Operation, Store};
use crate::request::{Form, Request};

/// A store whose value is on its way. Its line has left the input, so that it holds its own copy.
#[derive(Debug)]
pub(super) struct Storing<W> {
    key: Box<[u8]>,
    flags: Box<[u8]>,
    /// The rest of the store: the key is empty.
    store: Store<'static>,
    /// The rest of the form: the flags are empty.
    form: Form<'static>,
    pub(super) left_bytes: u64,
    /// From the beginning of the value on.
    pub(super) writer: Option<W>,
}

impl<W> Storing<W> {
    pub(super) fn new(request: &Request<'_>) -> Self {
        let Operation::Store(store) = request.operation else {
            panic!("a value in parts is stored, and not {:?}", request.operation);
        };
        let (flags, form): (&[u8], _) = match request.form {
            Form::Meta { flags, is_quiet, is_base64 } => {
                (flags, Form::Meta { flags: &[], is_quiet, is_base64 })
            }
            Form::Text { is_quiet } => (&[], Form::Text { is_quiet }),
            form => panic!("a store has no form {form:?}"),
        };
        Storing {
            key: store.key.into(),
            flags: flags.into(),
            store: Store { key: &[], value: &[], ..store },
            form,
            left_bytes: store.value_bytes,
            writer: None,
        }
    }

    pub(super) fn store(&self) -> Store<'_> {
        Store { key: &self.key, ..self.store }
    }

    pub(super) fn request(&self) -> Request<'_> {
        let form = match self.form {
            Form::Meta { is_quiet, is_base64, .. } => {
                Form::Meta { flags: &self.flags, is_quiet, is_base64 }
            }
            form => form,
        };
        Request { operation: Operation::Store(self.store()), form }
    }

    pub(super) fn is_quiet(&self) -> bool {
        matches!(self.form, Form::Text { is_quiet: true })
    }
}
