'use strict'

// Programs behind symbolic links find their modules, no matter what stderr is (lib/files.js).

const test = require('ava')
const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { register } = require('../helpers/run')

const { LONGSTACK_SPANS, NODE_OPTIONS, ...inherited } = process.env

/** @param {import('ava').ExecutionContext} t */
function layouts (t) {
  const directory = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-links-')))
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
  /** @param {string} name @param {string} content */
  const write = (name, content) => {
    fs.mkdirSync(path.dirname(path.join(directory, name)), { recursive: true })
    fs.writeFileSync(path.join(directory, name), content)
  }
  /** @param {string} target @param {string} name */
  const link = (target, name) => {
    fs.mkdirSync(path.dirname(path.join(directory, name)), { recursive: true })
    fs.symlinkSync(target, path.join(directory, name))
  }
  write('package/tool.js', "console.log('ran', require('./part'))")
  write('package/part.js', "module.exports = 'part'")
  link('../../package/tool.js', 'node_modules/.bin/tool.js')
  const store = 'node_modules/.pnpm/first@1/node_modules'
  write(`${store}/first/index.js`, "module.exports = 'first with ' + require('second')")
  write(`${store}/second/index.js`, "module.exports = 'second'")
  link('.pnpm/first@1/node_modules/first', 'node_modules/first')
  write('app.js', "console.log('ran', require('first'))")
  return directory
}

for (const kind of /** @type {const} */ (['pipe', 'socket', 'file'])) {
  test(`stderr is a ${kind}: bin links and the layout of pnpm`, async (t) => {
    const directory = layouts(t)
    const stderr = await errorStream(t, kind, directory)
    for (const spans of [undefined, '-', '/dev/stdout', path.join(directory, 'spans.jsonl')]) {
      for (const file of ['node_modules/.bin/tool.js', 'app.js']) {
        const { stdout } = spawnSync(process.execPath, ['-r', register, path.join(directory, file)], {
          env: spans === undefined ? inherited : { ...inherited, LONGSTACK_SPANS: spans },
          stdio: ['ignore', 'pipe', stderr],
          encoding: 'utf8'
        })
        t.regex(stdout, /^ran (part|first with second)$/m, `${file}, spans: ${spans}`)
      }
    }
  })
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {'pipe' | 'socket' | 'file'} kind
 * @param {string} directory
 * @returns {Promise<any>} for stdio of a child
 */
async function errorStream (t, kind, directory) {
  if (kind === 'file') {
    const fd = fs.openSync(path.join(directory, 'stderr'), 'w')
    t.teardown(() => fs.closeSync(fd))
    return fd
  }
  if (kind === 'socket') return 'pipe' // Node makes a pair of sockets for it
  // A FIFO, as a shell's pipe is: opened for both ends, so that neither waits for the other
  const name = path.join(directory, 'fifo')
  spawnSync('mkfifo', [name])
  const fd = fs.openSync(name, fs.constants.O_RDWR)
  t.teardown(() => fs.closeSync(fd))
  return fd
}
