'use strict'

// Filters of any names: refused with a code, or selecting what the rules of docs/options.md say, written down
// anew. Types have any name.

const trace = require('..')
const { compile, subsystems } = require('../lib/subsystems')
const { mustThrowCode } = require('./helpers/expectations')
const { anything } = require('./helpers/values')
const { check, fc } = require('./helpers/property')

const types = [...subsystems.values()].flatMap((set) => [...set])

/** @param {string[]} filter that was accepted @param {string} type */
function oracle (filter, type) {
  let isSelected = filter[0]?.startsWith('-') === true
  for (const entry of filter) {
    const takes = !entry.startsWith('-')
    const name = (takes ? entry : entry.slice(1)).trim()
    const isMeant = name === '*' || name === type || name === `type:${type}` ||
      (subsystems.get(name)?.has(type) ?? false)
    if (isMeant && !(subsystems.has(name) && name === type &&
      !subsystems.get(name)?.has(type))) isSelected = takes
  }
  return isSelected
}

/** @type {import('./helpers/targets').Target} */
module.exports = {
  name: 'filters',
  async run (settings) {
    const odd = fc.constantFrom('', ' ', '-', '--', '-*', 'type:', '-type:X', 'tcp', 'TPC', '__proto__',
      'constructor', '- TCP ', 'Own', 'X Y')
    const name = fc.oneof(fc.constantFrom(...subsystems.keys()), fc.constantFrom(...types), odd, fc.string())
    const entry = fc.oneof(name, name.map((text) => `-${text}`))
    const type = fc.oneof(fc.constantFrom(...types), odd, fc.string())
    const any = fc.array(fc.oneof({ arbitrary: entry.map((text) => ({ make: () => text })), weight: 8 },
      anything()), { maxLength: 6 })
    return check(fc.property(any, anything(), fc.array(type, { maxLength: 20 }), (entries, whole, asked) => {
      const filter = entries.map(({ make }) => make())
      const matches = mustThrowCode(() => compile(filter), { allowsHostile: true })
      if (matches !== undefined) {
        for (const one of asked) {
          if (matches(one) !== oracle(filter,
            one)) throw new Error(`${JSON.stringify(one)} is ${matches(one)}, by the rules not`)
        }
      }
      for (const value of [filter, whole.make()]) {
        mustThrowCode(() => trace.handles(/** @type {any} */ (value)), { allowsHostile: true })
        mustThrowCode(() => trace.onError(/** @type {any} */ (value), () => false)(), { allowsHostile: true })
      }
    }), settings)
  }
}
