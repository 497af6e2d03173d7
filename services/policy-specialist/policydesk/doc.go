// Package policydesk finds the policy that applies to a case.
//
// Consumes: task.policy-specialist.*.* (slice policy). Emits: policy_reading,
// or task.error. Grants: the tool policy.search; no network peer.
//
// Invariants:
//   - The rule is the one published with the passage that is relied on, as of
//     the moment the case was received; it is never read out of prose.
//   - A case is answered from the corpus version it is pinned to, or not at all:
//     an unknown version is an incomplete look-up.
//   - Current passages of equal authority that disagree are reported as
//     conflicts; "nothing found" is a supported look-up without a passage.
//   - Policy text is data: it is quoted with its origin, and nothing here
//     follows it.
//
// Failure: a refused look-up fails the task with its reason.
package policydesk
