//! The accounts of a store, in a file of its directory.
//!
//! ```text
//! change: accounts.lock locked ─ file read ─ changed ─ accounts.json.new written, synced ─ renamed
//! look-up: identity, size and time of the file as before ─> what was read then; else read again
//! ```
//!
//! So a running server follows every change at once, and a key that was taken back is refused
//! from then on.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::account::{Account, NewAccount, TenantLimits, is_account_name};
use crate::error::AccountsError;
use crate::keys::{Secret, new_key_pair};

const FILE_NAME: &str = "accounts.json";
const NEW_FILE_NAME: &str = "accounts.json.new";
const LOCK_NAME: &str = "accounts.lock";
/// Version of the file's form where no account is a tenant.
const VERSION_WITHOUT_TENANTS: u32 = 1;
/// Version where one is: programs that would drop its limits refuse the file.
const VERSION_WITH_TENANTS: u32 = 2;
const OWNER_ALONE: u32 = 0o600;
const OTHERS: u32 = 0o077;

/// What the file holds.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    version: u32,
    accounts: Vec<Account>,
}

/// Tells one state of the file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size_bytes: u64,
    changed: (i64, i64),
}

/// All accounts at one moment; the same one as long as nothing is changed.
pub type AllAccounts = Arc<Vec<Arc<Account>>>;

/// The accounts of the store in a directory; changes of other processes are seen at once.
///
/// ```
/// use accounts::{Accounts, NewAccount};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = std::env::temp_dir().join(format!("accounts-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// let accounts = Accounts::in_directory(&directory);
/// let write = vec!["team-*".parse()?];
/// let made = accounts.create(NewAccount { name: "ci".into(), write, ..Default::default() })?;
/// let found = accounts.by_access_key(&made.access_key)?.ok_or("it is there")?;
/// assert!(found.may_write("team-a") && !found.may_read("other"));
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Accounts {
    directory: PathBuf,
    read: Mutex<Option<(Stamp, AllAccounts)>>,
}

impl Accounts {
    /// Of the store in `directory`, which need not have a file of accounts.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), read: Mutex::new(None) }
    }

    /// All accounts, by name.
    ///
    /// # Errors
    /// [`AccountsError`] of the file.
    pub fn list(&self) -> Result<Vec<Arc<Account>>, AccountsError> {
        Ok(self.read()?.to_vec())
    }

    /// The same as one value, which tells by [`Arc::ptr_eq`] whether anything was changed.
    ///
    /// # Errors
    /// [`AccountsError`] of the file.
    pub fn all(&self) -> Result<AllAccounts, AccountsError> {
        self.read()
    }

    /// The account that signs with this key.
    ///
    /// # Errors
    /// [`AccountsError`] of the file.
    pub fn by_access_key(&self, access_key: &str) -> Result<Option<Arc<Account>>, AccountsError> {
        let all = self.read()?;
        Ok(all.iter().find(|account| account.access_key == access_key).cloned())
    }

    /// Makes an account with a key pair of its own. A tenant gets the domain of its name if it is
    /// given none.
    ///
    /// # Errors
    /// [`AccountsError::BadName`], [`AccountsError::Exists`], [`AccountsError::DomainTaken`];
    /// [`AccountsError`] of the file.
    pub fn create(&self, new: NewAccount) -> Result<Account, AccountsError> {
        let NewAccount { name, read, write, domain, tenant, created_unix_s } = new;
        if !is_account_name(&name) {
            return Err(AccountsError::BadName { name });
        }
        self.change(|accounts| {
            if accounts.iter().any(|account| account.name == name) {
                return Err(AccountsError::Exists { name });
            }
            let is_chosen = domain.is_some();
            let domain = domain.or_else(|| tenant.as_ref().map(|_| name.clone()));
            if let (Some(domain), Some(_)) = (&domain, &tenant) {
                // A domain that is named may be that of accounts; one that is made up is new.
                let has_it = |account: &&Account| {
                    account.domain.as_ref() == Some(domain)
                        && (account.tenant.is_some() || !is_chosen)
                };
                if let Some(owner) = accounts.iter().find(has_it) {
                    let (domain, owner) = (domain.clone(), owner.name.clone());
                    return Err(AccountsError::DomainTaken { domain, owner });
                }
            }
            let (access_key, secret) = new_key_pair()?;
            let made =
                Account { name, access_key, secret, read, write, domain, tenant, created_unix_s };
            accounts.push(made.clone());
            Ok(made)
        })
    }

    /// Changes an account; its name, its keys, whether it is a tenant, and the domain of a tenant
    /// stay.
    ///
    /// # Errors
    /// [`AccountsError::NoSuchAccount`]; [`AccountsError::DomainOfTenant`] when `change` changes
    /// that domain; [`AccountsError`] of the file.
    pub fn set(
        &self,
        name: &str,
        change: impl FnOnce(&mut Account),
    ) -> Result<Account, AccountsError> {
        self.change(|accounts| {
            let account = find(accounts, name)?;
            let before = account.clone();
            change(account);
            let Account { name, access_key, secret, domain, tenant, .. } = before;
            if tenant.is_some() && account.domain != domain {
                return Err(AccountsError::DomainOfTenant { name });
            }
            (account.name, account.tenant) = (name, tenant);
            (account.access_key, account.secret) = (access_key, secret);
            Ok(account.clone())
        })
    }

    /// Changes what a tenant may use.
    ///
    /// # Errors
    /// [`AccountsError::NoSuchAccount`], [`AccountsError::NoTenant`]; [`AccountsError`] of the
    /// file.
    pub fn set_tenant(
        &self,
        name: &str,
        change: impl FnOnce(&mut TenantLimits),
    ) -> Result<Account, AccountsError> {
        self.change(|accounts| {
            let account = find(accounts, name)?;
            let limits = account.tenant.as_mut();
            change(limits.ok_or_else(|| AccountsError::NoTenant { name: name.to_owned() })?);
            Ok(account.clone())
        })
    }

    /// Gives an account a new key pair; doors refuse the one before from now on.
    ///
    /// # Errors
    /// [`AccountsError::NoSuchAccount`]; [`AccountsError`] of the file.
    pub fn renew_keys(&self, name: &str) -> Result<Account, AccountsError> {
        self.change(|accounts| {
            let account = find(accounts, name)?;
            let (access_key, secret): (String, Secret) = new_key_pair()?;
            (account.access_key, account.secret) = (access_key, secret);
            Ok(account.clone())
        })
    }

    /// Deletes an account; its buckets stay.
    ///
    /// # Errors
    /// [`AccountsError::NoSuchAccount`]; [`AccountsError`] of the file.
    pub fn delete(&self, name: &str) -> Result<(), AccountsError> {
        self.change(|accounts| {
            find(accounts, name)?;
            accounts.retain(|account| account.name != name);
            Ok(())
        })
    }

    fn path(&self) -> PathBuf {
        self.directory.join(FILE_NAME)
    }

    fn read(&self) -> Result<AllAccounts, AccountsError> {
        let path = self.path();
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Arc::default()),
            Err(source) => return Err(AccountsError::Io { path, source }),
        };
        let stamp = Stamp {
            inode: metadata.ino(),
            size_bytes: metadata.size(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, accounts)) = &*read
            && *of == stamp
        {
            return Ok(Arc::clone(accounts));
        }
        let stored = load(&path)?;
        let accounts: AllAccounts = Arc::new(stored.accounts.into_iter().map(Arc::new).collect());
        *read = Some((stamp, Arc::clone(&accounts)));
        Ok(accounts)
    }

    /// Lets `change` change the accounts, and writes them if it succeeds.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Account>) -> Result<T, AccountsError>,
    ) -> Result<T, AccountsError> {
        let lock_path = self.directory.join(LOCK_NAME);
        let io_at = |path: &Path| {
            let path = path.to_owned();
            move |source| AccountsError::Io { path, source }
        };
        let mut options = OpenOptions::new();
        let lock = options.write(true).create(true).truncate(false).mode(OWNER_ALONE);
        let lock = lock.open(&lock_path).map_err(io_at(&lock_path))?;
        lock.lock().map_err(io_at(&lock_path))?;
        let path = self.path();
        let mut stored = match path.symlink_metadata() {
            Ok(_) => load(&path)?,
            Err(_) => Stored::default(),
        };
        let answer = change(&mut stored.accounts)?;
        let has_tenant = stored.accounts.iter().any(|account| account.tenant.is_some());
        stored.version = if has_tenant { VERSION_WITH_TENANTS } else { VERSION_WITHOUT_TENANTS };
        stored.accounts.sort_by(|one, two| one.name.cmp(&two.name));
        let new_path = self.directory.join(NEW_FILE_NAME);
        write_whole(&new_path, &stored).map_err(io_at(&new_path))?;
        fs::rename(&new_path, &path).map_err(io_at(&path))?;
        File::open(&self.directory).and_then(|it| it.sync_all()).map_err(io_at(&self.directory))?;
        Ok(answer)
    }
}

fn find<'a>(accounts: &'a mut [Account], name: &str) -> Result<&'a mut Account, AccountsError> {
    let found = accounts.iter_mut().find(|account| account.name == name);
    found.ok_or_else(|| AccountsError::NoSuchAccount { name: name.to_owned() })
}

fn load(path: &Path) -> Result<Stored, AccountsError> {
    let io = |source| AccountsError::Io { path: path.to_owned(), source };
    let damaged = |reason: String| AccountsError::Damaged { path: path.to_owned(), reason };
    let mode = fs::metadata(path).map_err(io)?.permissions().mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(AccountsError::Readable { path: path.to_owned(), mode });
    }
    let bytes = fs::read(path).map_err(io)?;
    let stored: Stored = serde_json::from_slice(&bytes).map_err(|error| {
        // Its text may quote the file, which has secrets.
        damaged(format!("line {}, column {}", error.line(), error.column()))
    })?;
    match stored.version {
        VERSION_WITHOUT_TENANTS | VERSION_WITH_TENANTS => Ok(stored),
        other => Err(damaged(format!(
            "it has version {other}, and this program knows versions up to {VERSION_WITH_TENANTS}"
        ))),
    }
}

/// A file that is there and may hold anything is one that a change left behind.
fn write_whole(path: &Path, stored: &Stored) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(OWNER_ALONE).open(path)?;
    file.set_permissions(Permissions::from_mode(OWNER_ALONE))?;
    let mut bytes = serde_json::to_vec_pretty(stored)?;
    bytes.push(b'\n');
    file.write_all(&bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
