//! Known bugs for the fuzzers: one lives that `TAMIS_MUTANT` names when they are built.
//! A build without debug assertions has no mutants.

/// Lets the bug live that the build names, in the thread that fuzzes.
///
/// # Panics
/// When there is no bug of that name.
pub fn release() {
    #[cfg(debug_assertions)]
    if let Some(name) = option_env!("TAMIS_MUTANT") {
        let known = mutants::Mutant::ALL.into_iter().find(|one| format!("{one:?}") == name);
        assert!(known.is_some(), "there is no mutant {name}");
        mutants::let_live(known);
    }
}
