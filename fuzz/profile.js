'use strict'

// Profiles of a process that is not trusted, through every output of longstack profile: hostile texts and
// numbers, any value in any place, and what is cut or no JSON. What is no profile is refused; what is one is
// printed without commands of a terminal, and as a page without an element of its own.

const zlib = require('node:zlib')
const { asJson } = require('../lib/cli/terminal')
const { parseProfile } = require('../report/read/profile')
const { collapsed, pprof, profileText } = require('../report/render/profile')
const { createProfilePage } = require('../report/render/page')
const { expectHarmless } = require('./helpers/expectations')
const { elementsOf, expectNoMarkup } = require('./helpers/page')
const { changed, hostileNumber, hostileText } = require('./helpers/span-lines')
const { check, fc } = require('./helpers/property')

const BATCH = 20
const DEEP = 50_000

const figure = fc.oneof({ arbitrary: fc.nat(1000), weight: 4 }, hostileNumber)
const frame = fc.oneof(fc.nat(9).map((n) => `load${n} (/app/db.js:${n}:3)`), hostileText)

const chain = fc.record({
  frames: fc.array(frame, { maxLength: 5 }),
  label: hostileText,
  type: hostileText,
  kind: hostileText,
  route: fc.option(hostileText, { nil: undefined }),
  count: figure,
  requests: figure,
  ranMs: figure,
  waitedMs: figure,
  waits: figure,
  cpuMs: figure
})
const sample = fc.record({
  chain: fc.nat(5), frames: fc.array(frame, { maxLength: 5 }), ms: figure, count: figure
})
const kind = fc.constantFrom('route', 'frame', 'ran', 'waited', '__proto__')
const { tree } = fc.letrec((tie) => ({
  tree: fc.record({
    name: frame,
    kind,
    ms: figure,
    count: figure,
    children: fc.oneof({ maxDepth: 6 }, fc.constant([]), fc.array(tie('tree'), { maxLength: 3 }))
  })
}))

const profile = fc.record({
  pid: figure,
  threadId: figure,
  nodeVersion: hostileText,
  startUnixMs: figure,
  seconds: figure,
  ranMs: figure,
  idleMs: figure,
  cpuSeconds: figure,
  sampleCount: figure,
  chains: fc.array(chain, { maxLength: 6 }),
  otherChains: fc.record({ count: figure, ranMs: figure, waitedMs: figure }),
  samples: fc.array(sample, { maxLength: 6 }),
  tree: tree.map((node) => Object.assign(/** @type {object} */ (node), { kind: 'root' })),
  lacks: fc.array(hostileText, { maxLength: 3 })
})

const DEEP_CALLS = `${'{"name":"f","kind":"frame","ms":1,"children":['.repeat(DEEP)}${']}'.repeat(DEEP)}`

/** Puts in a chain of calls that is deeper than the stack. @param {string} json */
const deepen = (json) => json.replace('"children":[]', `"children":[${DEEP_CALLS}]`)

function profileJson () {
  const json = profile.map((object) => JSON.stringify(object))
  const changedJson = changed(profile).map((object) => JSON.stringify(object))
  return fc.oneof({ arbitrary: json, weight: 4 }, { arbitrary: changedJson, weight: 4 },
    json.map(deepen), fc.json(),
    fc.tuple(json, fc.nat(5000)).map(([text, length]) => text.slice(0, length)))
}

/** @param {any} read @param {string} elements of a page of nothing */
function render (read, elements) {
  for (const width of [20, 80, 200]) expectHarmless('text', profileText(read, { width }))
  expectHarmless('json', asJson(read))
  for (const value of /** @type {const} */ (['ran', 'waited', 'cpu'])) {
    const text = collapsed(read, value)
    expectHarmless('stacks', text)
    if (!/^(?:.* \d+\n)*$/.test(text)) throw new Error(`a line has no number: ${text.slice(0, 200)}`)
  }
  zlib.gunzipSync(pprof(read))
  expectNoMarkup(createProfilePage(read), elements)
}

/** @type {import('./helpers/targets').Target} */
module.exports = {
  name: 'profile',
  async run (settings) {
    const nothing = /** @type {any} */ (parseProfile('{"tree":{},"chains":[]}'))
    const elements = elementsOf(createProfilePage(nothing))
    return check(fc.property(profileJson(), (json) => {
      const read = parseProfile(json)
      if (read !== undefined) render(read, elements)
      if (/** @type {any} */ ({}).polluted !== undefined) throw new Error('a prototype was changed')
    }), settings, BATCH)
  }
}
