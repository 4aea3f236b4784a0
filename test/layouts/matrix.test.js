'use strict'

// A program behaves the same with and without longstack, wherever both are installed, however
// longstack is loaded, and whatever the standard streams are. On two versions in CI, enough
// combinations run that each pair of values occurs in one (test/helpers/scope.js); elsewhere, each
// value occurs in one (test/helpers/cover.js). LAYOUTS=3 covers each triple, which takes a quarter of
// an hour.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { AS_STDOUT, differencesOf, expectedSpans, inputs, outputs, play, redirections, ways } = require('../helpers/cells')
const { cover } = require('../helpers/cover')
const { Layouts, layouts, noReadOnly } = require('../helpers/layouts')
const { oddNames } = require('../helpers/odd-names')
const { inTurn, runsAll, split } = require('../helpers/run')
const { noTerminal } = require('../helpers/terminal')
const { recordsOf } = require('../helpers/records')

const strength = Number(process.env.LAYOUTS ?? (runsAll ? 2 : 1))
// paths.test.js has all names
const names = process.env.LAYOUTS === undefined ? oddNames.filter((_, i) => i % 3 === 0) : oddNames

const dimensions = {
  layout: Object.keys(layouts),
  name: ['plain', ...names],
  way: Object.keys(ways),
  main: ['main.cjs', 'main.mjs'],
  stdin: Object.keys(inputs),
  stdout: Object.keys(redirections),
  stderr: [...Object.keys(redirections), AS_STDOUT],
  spans: Object.keys(outputs),
  end: ['return', 'throw', 'reject', 'exit', 'signal'],
  capture: ['auto', 'js']
}

const lacks = {
  'read-only': noReadOnly(),
  terminal: noTerminal(),
  full: fs.existsSync('/dev/full') ? undefined : 'not tried: there is no /dev/full'
}

const unavailable = Object.entries(lacks).filter(([, reason]) => reason !== undefined).map(([value]) => value)

/**
 * Node itself imports no file behind a name with a backslash, and finds no package with `exports` there
 * (`finalizeResolution` in lib/internal/modules/esm/resolve.js): longstack has to be named by its file.
 * @param {Partial<import('../helpers/cover').Combination>} cell
 */
function isPossible ({ name, layout, main, way, ...others }) {
  const values = [layout, ...Object.values(others)]
  // A socket has the texts of both streams in any order; what is closed is nothing to be the same as
  if (others.stderr === AS_STDOUT && ['socket', 'closed'].includes(String(others.stdout))) return false
  if (unavailable.some((value) => values.includes(value))) return false
  if (name !== 'back\\slash') return true
  if (main === 'main.mjs' || layout === 'pnp' || layout === 'pnp, zipped') return false
  return way === undefined || way === '-r FILE' || way === 'longstack run'
}

const hasBash = spawnSync('bash', ['-c', 'true']).status === 0
const trees = new Layouts()
test.after.always(() => trees.remove())

for (const reason of Object.values(lacks)) if (reason !== undefined) test(reason, (t) => t.pass())
if (!hasBash) test('not run: there is no bash', (t) => t.pass())

for (const cell of hasBash ? cover(dimensions, strength, isPossible) : []) {
  test(Object.keys(dimensions).map((name) => cell[name]).join(' · '), (t) => inTurn(async () => {
    const project = trees.make(cell.layout, cell.name)
    const scratch = trees.scratch()
    const bare = await play(cell, project, path.join(scratch, 'bare', cell.name), false)
    const traced = await play(cell, project, path.join(scratch, 'traced', cell.name), true)
    t.deepEqual(differencesOf(cell, bare, traced), [])
    const { place, stack, worker: [[worker]], child: [[child]] } = traced.seen
    for (const one of [stack, worker.stack, child.stack]) t.regex(one, /\n {2}── setTimeout\(1\)/)
    t.true(split(stack).hops[0].frames.includes(`${place}:`), stack)
    t.regex(worker.stack, /\n {2}── new Worker · .*in the parent thread ──\n/)
    t.regex(child.stack, /\n {2}── fork\(child\.cjs\) · .*in process \d+ ──\n/)
    t.is(recordsOf(traced.spans).map(({ spanId }) => spanId).length, expectedSpans(cell), 'spans')
  }))
}
