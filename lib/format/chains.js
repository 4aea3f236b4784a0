'use strict'

// Chains and hops as the program gets them: data, which util.inspect prints as text. Loaded when a chain is
// requested, not for an error.

const { createTag } = require('../core/tag')
const { copyHop } = require('../stacks/hop-frames')
const { formatHops } = require('./hops')
const { createInspectable, printedOf } = require('./inspect')

/**
 * @typedef {import('../stacks/chain').Hop} Hop
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 */

/** @type {ReturnType<typeof createTag<PrintedHop>>} what a hop prints, invisible on the program's copy */
const printedHop = createTag()

const inspectableChain = createInspectable((/** @type {Hop[]} */ chain) => {
  const hops = printedOf(chain, printedHop) ?? []
  return hops.length === 0 ? undefined : { text: formatHops(hops), title: `${hops.length} hops` }
})

/**
 * Copies a chain for the program.
 * @param {PrintedHop[]} hops
 * @param {(label: string) => string} [edit] is applied to labels
 * @returns {Hop[]}
 */
function copyChain (hops, edit = (label) => label) {
  return inspectableChain(hops.map((hop) => {
    const copy = copyHop(hop)
    copy.label = edit(copy.label)
    printedHop.write(copy, hop)
    return copy
  }))
}

module.exports = { copyChain }
