//! The tenants of a store, as its file of accounts has them.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use accounts::{Account, Accounts, AccountsError, AllAccounts};

use crate::shares::PartyId;
use crate::tenant::Tenant;

/// The tenants of a served store.
///
/// A tenant whose account changes stays the same [`Tenant`]: connections that hold it follow.
///
/// ```
/// # use std::sync::Arc;
/// use accounts::{Accounts, NewAccount, TenantLimits};
/// use tenants::Tenants;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = std::env::temp_dir().join(format!("tenants-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// let accounts = Arc::new(Accounts::in_directory(&directory));
/// let requests_per_s = std::num::NonZeroU64::new(2);
/// let limits = TenantLimits { requests_per_s, ..Default::default() };
/// let new = NewAccount { name: "acme".into(), tenant: Some(limits), ..Default::default() };
/// let account = accounts.create(new)?;
/// let tenants = Tenants::over(accounts)?;
/// let acme = tenants.of(&account).ok_or("it is a tenant")?;
/// let now = std::time::Instant::now();
/// assert!(acme.charge(1, 0, now).is_none());
/// assert!(acme.charge(5, 0, now).is_some());
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Tenants {
    accounts: Arc<Accounts>,
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// What the file held when the tenants were made of it.
    of: AllAccounts,
    by_domain: HashMap<String, Arc<Tenant>>,
    made: u64,
}

impl Tenants {
    /// Of these accounts, as they are now.
    ///
    /// # Errors
    /// [`AccountsError`] of the file.
    pub fn over(accounts: Arc<Accounts>) -> Result<Self, AccountsError> {
        let tenants = Self::unread(accounts);
        tenants.refresh()?;
        Ok(tenants)
    }

    /// Of these accounts, which [`Tenants::refresh`] reads.
    #[must_use]
    pub fn unread(accounts: Arc<Accounts>) -> Self {
        Self { accounts, known: RwLock::default() }
    }

    /// The accounts.
    #[must_use]
    pub fn accounts(&self) -> &Arc<Accounts> {
        &self.accounts
    }

    /// Follows what was changed in the accounts, if anything was; cheap if not. Where the file
    /// cannot be read all stays as it was.
    ///
    /// # Errors
    /// [`AccountsError`] of the file.
    pub fn refresh(&self) -> Result<(), AccountsError> {
        let all = self.accounts.all()?;
        let is_same = |known: &Known| Arc::ptr_eq(&known.of, &all);
        if is_same(&self.known.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(());
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if !is_same(&known) {
            known.follow(all, Instant::now());
        }
        Ok(())
    }

    /// The tenant whose account this is, or whose domain it shares; none: it has no limits.
    #[must_use]
    pub fn of(&self, account: &Account) -> Option<Arc<Tenant>> {
        self.of_domain(account.domain.as_deref()?)
    }

    /// The tenant whose buckets are in this domain.
    #[must_use]
    pub fn of_domain(&self, domain: &str) -> Option<Arc<Tenant>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.by_domain.get(domain).cloned()
    }

    /// All, by name.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Tenant>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = known.by_domain.values().cloned().collect();
        all.sort_by(|one, two| one.name().cmp(two.name()));
        all
    }
}

impl Known {
    fn follow(&mut self, all: AllAccounts, now: Instant) {
        let mut before = std::mem::take(&mut self.by_domain);
        for account in &*all {
            let (Some(limits), Some(domain)) = (&account.tenant, &account.domain) else { continue };
            let same = before.remove(domain).filter(|tenant| tenant.name() == account.name);
            let tenant = match same {
                Some(tenant) => {
                    tenant.set_limits(limits, now);
                    tenant
                }
                None => {
                    self.made += 1;
                    let party = PartyId(self.made);
                    Arc::new(Tenant::new(&account.name, domain, party, limits, now))
                }
            };
            self.by_domain.insert(domain.clone(), tenant);
        }
        self.of = all;
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use accounts::{Accounts, NewAccount, TenantLimits};

    use super::Tenants;

    #[test]
    fn tenants_follow_their_accounts() {
        let directory = std::env::temp_dir().join(format!("tenants-follow-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let accounts = Arc::new(Accounts::in_directory(&directory));
        let tenants = Tenants::over(Arc::clone(&accounts)).unwrap();
        let other = Accounts::in_directory(&directory);
        let limits = TenantLimits { quota_bytes: Some(5), ..TenantLimits::default() };
        let new = |name: &str| NewAccount { name: name.to_owned(), ..NewAccount::default() };
        let acme = other.create(NewAccount { tenant: Some(limits), ..new("acme") }).unwrap();
        let plain = other.create(new("plain")).unwrap();
        let second = NewAccount { domain: Some("acme".to_owned()), ..new("second") };
        let second = other.create(second).unwrap();
        assert!(tenants.of(&acme).is_none());
        tenants.refresh().unwrap();
        let tenant = tenants.of(&acme).unwrap();
        assert_eq!(
            (tenant.name(), tenant.domain(), tenant.quota_bytes()),
            ("acme", "acme", Some(5))
        );
        assert!(Arc::ptr_eq(&tenant, &tenants.of(&second).unwrap()));
        assert!(tenants.of(&plain).is_none() && tenants.all().len() == 1);

        let now = Instant::now();
        assert_eq!(tenant.charge(1000, 0, now), None);
        let changes = tenant.changes();
        other
            .set_tenant("acme", |limits| {
                limits.requests_per_s = NonZeroU64::new(1);
                limits.quota_bytes = None;
            })
            .unwrap();
        tenants.refresh().unwrap();
        assert!(tenant.changes() > changes && tenant.quota_bytes().is_none());
        let longest = Duration::from_secs(30);
        let now = Instant::now();
        let refused = tenant.charge_within(1000, 0, now, longest).unwrap_err();
        assert!(refused.waits > longest && refused.to_string().contains("over its rate"));
        assert!(
            tenant.charge_within(2, 0, now, longest).unwrap().unwrap() <= Duration::from_secs(2)
        );
        assert_eq!(tenant.figures().throttled_requests, 1);

        other.delete("acme").unwrap();
        tenants.refresh().unwrap();
        assert!(tenants.of(&second).is_none() && tenants.all().is_empty());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
