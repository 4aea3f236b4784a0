'use strict'

// Weakly held objects in numbered slots: responses, in the slots of their requests' records; recently changed
// objects; and recently opened files. V8's scavenger treats a WeakRef as a strong reference. With a WeakRef
// per response, all of them would live until a mark-sweep (0.2 of bare in `hello` of bench/run.js). The addon
// has handles that V8 clears at once.

const { loadBinding } = require('../stacks/binding')

// The addon has as many slots as these together; see native/engine.h.
const RESPONSES = 1 << 13 // first slots, for responses: one per request record
const RECENT = 1 << 6 // next slots, for recently changed objects; a power of two
const BRIEF = 1 << 10 // last slots, for files
const FIRST_BRIEF = RESPONSES + RECENT

/** null: no addon @type {import('../stacks/capture-native').Binding | null | undefined} */
let addon
/** used without the addon @type {Array<WeakRef<object> | undefined>} */
const refs = []

/** @returns {import('../stacks/capture-native').Binding | null} */
const find = () => /** @type {any} */ (loadBinding().binding) ?? null

/** @param {number} slot @param {object} object */
function keepWeak (slot, object) {
  addon ??= find()
  if (addon === null) refs[slot] = new WeakRef(object)
  else addon.keepWeak(slot, object)
}

/** @param {number} slot @returns {object | undefined} */
const weakAt = (slot) => addon === null ? refs[slot]?.deref() : addon?.weakAt(slot)

module.exports = { BRIEF, FIRST_BRIEF, RECENT, RESPONSES, keepWeak, weakAt }
