'use strict'

// Objects that are kept weakly, in numbered slots: responses by the slots of their requests' records, what
// was changed last, and files that were just opened. V8's scavenger takes a WeakRef for a strong one: for
// each response that would keep all of them until a mark-sweep (0.2 of bare in `hello` of bench/run.js). The
// addon has handles that V8 clears at once.

const { loadBinding } = require('../stacks/binding')

// The addon has as many slots as all together, see native/engine.h.
const RESPONSES = 1 << 13 // slots of responses, the first ones: as many as records of requests
const RECENT = 1 << 6 // slots behind them, of what was changed last; a power of two
const BRIEF = 1 << 10 // slots behind these, of files
const FIRST_BRIEF = RESPONSES + RECENT

/** the addon; null: there is none @type {import('../stacks/capture-native').Binding | null | undefined} */
let addon
/** without it @type {Array<WeakRef<object> | undefined>} */
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
