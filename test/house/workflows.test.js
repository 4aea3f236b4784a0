'use strict'

// GitHub workflows: they are valid, and their matrix has the same platforms and versions of Node as the rest
// of the project.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { engines, scripts } = require('../../package.json')
const { ABIS, PLATFORMS } = require('../../lib/platform')
const { targets } = require('../../native/targets')
const { root } = require('../helpers/run')
const { skip } = require('../helpers/skip')

const ACTIONLINT = 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.11'
const LINT_MS = 280_000 // the first time it is fetched and compiled: 16 s of a free machine
const WITHOUT_ENGINE = ['win32-x64'] // tested on Windows with the JavaScript engine

const directory = path.join(root, '.github', 'workflows')
const names = fs.readdirSync(directory)
const textOf = (/** @type {string} */ name) => fs.readFileSync(path.join(root, name), 'utf8')
const ci = textOf('.github/workflows/ci.yml')

/** Returns the items of a list in the matrix. @param {string} key @returns {string[]} */
function listOf (key) {
  return new RegExp(`^ +${key}: \\[(.*)\\]$`, 'm').exec(ci)?.[1].split(', ') ?? []
}

test('actionlint finds nothing', (t) => {
  t.timeout(LINT_MS)
  const { error } = spawnSync('go', ['version'])
  if (error !== undefined) return skip(t, 'Go is not installed')
  const files = names.map((name) => path.join(directory, name))
  const { status, stdout, stderr } = spawnSync('go', ['run', ACTIONLINT, ...files], { cwd: root, encoding: 'utf8' })
  if (status !== 0 && stdout === '' && !process.env.CI) return skip(t, stderr.split('\n', 1)[0])
  t.is(stdout + (status === 0 ? '' : stderr), '')
})

test('the matrix has a machine for each platform', (t) => {
  const platforms = listOf('platform')
  t.deepEqual([...platforms].sort(), [...Object.keys(targets), ...WITHOUT_ENGINE].sort())
  const machines = [...ci.matchAll(/^ +- \{ platform: ([\w-]+), runner: [\w.-]+ \}$/gm)].map(([, platform]) => platform)
  t.deepEqual(machines, platforms)
  t.deepEqual(PLATFORMS, Object.keys(targets))
})

test('the matrix, the binaries, .ci/run and package.json name the same versions of Node', (t) => {
  const versions = listOf('node').map(Number)
  t.deepEqual(versions, Object.keys(ABIS).map(Number))
  const oldest = Number(/^ +container: node:(\d+)-/m.exec(ci)?.[1])
  const others = /^for major in ([\d ]+); do$/m.exec(textOf('.ci/run'))?.[1].split(' ').map(Number) ?? []
  t.deepEqual([oldest, ...others], versions)
  const ranges = engines.node.split(' || ')
  const named = ranges.filter((range) => range.startsWith('^')).map((range) => Number(/\d+/.exec(range)?.[0]))
  const open = Number(/^>=(\d+)/.exec(ranges.at(-1) ?? '')?.[1])
  t.deepEqual(versions.filter((version) => version < open), named)
  t.true(versions.some((version) => version >= open))
})

test('actions are pinned by commit, with the version beside it', (t) => {
  for (const name of names) {
    const uses = textOf(`.github/workflows/${name}`).match(/\buses: .*/g) ?? []
    t.true(uses.length > 0)
    for (const line of uses) t.regex(line, /^uses: (?:\.\/|[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$)/)
  }
})

test('the scripts that the workflows run exist', (t) => {
  const texts = names.map((name) => textOf(`.github/workflows/${name}`)).join('\n')
  const called = [...texts.matchAll(/\bnpm run (?:--silent )?(\w+)/g)].map(([, name]) => name)
  t.deepEqual([...new Set(called)].sort(), ['build', 'release'])
  t.deepEqual(called.filter((name) => !(name in scripts)), [])
})
