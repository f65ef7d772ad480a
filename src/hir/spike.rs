//! Spike rules: what makes a spike, and what it does.
//!
//! In come `spike` lines of a cell; out go the condition, the states that are set, and how long they are held.
//! Never true here: a spike acts on another cell.

use super::error::SpikeError;
use super::lower::Lowerer;
use super::scope::{Role, Scope, ScopeKind};
use super::{Expr, ExprKind, Spike, SpikeCondition, SymbolId, Ty};
use crate::syntax::ast::{self, AssignOp, BinaryOp, SpikeAction};
use crate::units::Dim;

impl<'a> Lowerer<'a> {
    pub(super) fn spike(&mut self, scope: &mut Scope<'a>, s: &'a ast::Spike) -> Option<Spike> {
        let condition = self.spike_condition(scope, s);
        let mut resets = Vec::new();
        let mut refractory = None;
        let mut holds = None;
        let mut held = false;
        let mut fine = true;
        for action in &s.actions {
            match action {
                SpikeAction::Refractory { time, holds: names } => {
                    if held {
                        self.error(SpikeError::RefractoryTwice { span: time.span });
                    }
                    held = true;
                    refractory = self.expr_of(scope, "", time, Dim::TIME, "`refractory`");
                    fine &= refractory.is_some();
                    let Some(names) = names else { continue };
                    let mut named = Vec::new();
                    for name in names {
                        match self.state_of_spike(scope, name, "hold") {
                            Some(id) if named.contains(&id) => self.error(SpikeError::HeldTwice { name }),
                            Some(id) => named.push(id),
                            None => fine = false,
                        }
                    }
                    holds = Some(named);
                }
                SpikeAction::Assign(ast::Assign { name, op, value }) => {
                    fine &= self.reset(scope, &mut resets, name, *op, value).is_some();
                }
            }
        }
        let condition = condition?;
        if matches!(&condition, SpikeCondition::When(x) if !is_by_chance(x)) && s.actions.is_empty() {
            self.error(SpikeError::NothingResets { span: s.span, cell: scope });
            return None;
        }
        fine.then_some(Spike { condition, at: None, resets, refractory, holds, span: s.span })
    }

    /// The state that a spike rule names.
    fn state_of_spike(&mut self, scope: &Scope<'a>, name: &'a ast::Name, does: &'static str) -> Option<SymbolId> {
        let id = scope.get(&name.text).filter(|id| matches!(scope.entry(*id).role, Role::State { .. }));
        match id {
            Some(id) => self.note_state(name, scope.entry(id).span),
            None if scope.is_poisoned("", &name.text) => {}
            None => self.error(SpikeError::NotAState { name, does, cell: scope }),
        }
        id
    }

    /// `v = c`, `u += d`, `u -= d`.
    fn reset(
        &mut self,
        scope: &mut Scope<'a>,
        resets: &mut Vec<(SymbolId, Expr)>,
        name: &'a ast::Name,
        op: AssignOp,
        value: &'a ast::Expr,
    ) -> Option<()> {
        let id = self.state_of_spike(scope, name, "set")?;
        let ty = self.resolve(scope, id, None)?;
        let again = resets.iter().any(|r| r.0 == id);
        if again {
            self.error(SpikeError::SetTwice { name });
        }
        let x = self.expr(scope, "", value)?;
        if self.needs_unit(scope, id, name.span, (x.ty, Dim::ONE)) {
            return None;
        }
        let x = self.expect(scope, x, ty.dim(), &format!("the new value of `{}`", name.text))?;
        let old = Expr::symbol(id, ty, name.span);
        let x = match op {
            AssignOp::Set => x,
            AssignOp::Add => Expr::binary(BinaryOp::Add, old, x),
            AssignOp::Sub => Expr::binary(BinaryOp::Sub, old, x),
        };
        resets.push((id, x));
        (!again).then_some(())
    }

    fn spike_condition(&mut self, scope: &mut Scope<'a>, s: &'a ast::Spike) -> Option<SpikeCondition> {
        match &s.condition {
            ast::SpikeCondition::Crosses(a, b) => {
                let (a, b) = (self.expr(scope, "", a), self.expr(scope, "", b));
                let (a, b) = (a?, b?);
                if a.ty == Ty::Bool {
                    self.error(SpikeError::ConditionCrosses { span: a.span });
                    return None;
                }
                let level = self.expect(scope, b, a.ty.dim(), "the level that is crossed")?;
                Some(SpikeCondition::Crosses(a, level))
            }
            ast::SpikeCondition::When(e) => {
                self.start_streams("spike");
                let before = std::mem::replace(&mut scope.kind, ScopeKind::Spiking);
                let x = self.expr(scope, "", e);
                scope.kind = before;
                let x = x?;
                if x.ty != Ty::Bool {
                    self.error(SpikeError::NotACondition { x: &x, cell: scope });
                    return None;
                }
                Some(SpikeCondition::When(x))
            }
        }
    }
}

/// Does chance decide, so that nothing need be reset?
fn is_by_chance(condition: &Expr) -> bool {
    let mut found = false;
    condition.visit(&mut |e| found |= matches!(e.kind, ExprKind::Chance(..)));
    found
}
