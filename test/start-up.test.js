'use strict'

// What longstack/register loads before the program's first line: that is most of what a short program pays.

const test = require('ava')
const { program } = require('./helpers/run')

const MAX_FILES = 36
const MAX_BYTES = 240_000

/** @param {Record<string, string>} env @returns {Promise<{ files: string[], bytes: number, twoByte: string[], modules: string[] }>} */
async function loaded (env = {}) {
  const { stdout } = await program(`
    const modules = process.moduleLoadList.filter((name) => name.startsWith('NativeModule ')).map((name) => name.slice(13))
    const files = Object.keys(require.cache).filter((file) => /[\\\\/]lib[\\\\/]/.test(file))
    const texts = files.map((file) => require('node:fs').readFileSync(file, 'utf8'))
    console.log(JSON.stringify({
      files,
      bytes: texts.join('').length,
      twoByte: files.filter((file, i) => /[^\\0-\\xff]/.test(texts[i])),
      modules
    }))`, { env })
  return JSON.parse(stdout)
}

test('what records is loaded, and nothing else', async (t) => {
  const { files, bytes, twoByte, modules } = await loaded()
  t.true(files.length > 20 && files.length <= MAX_FILES, files.join('\n'))
  t.true(bytes <= MAX_BYTES, String(bytes))
  // V8 keeps such a file in two bytes a letter, and reads it slower.
  t.deepEqual(twoByte, [])
  for (const name of ['perf_hooks', 'worker_threads', 'net', 'http', 'inspector', 'crypto', 'zlib']) t.false(modules.includes(name), name)
})

test('spans need no threads', async (t) => {
  const { modules } = await loaded({ LONGSTACK_SPANS: '-' })
  for (const name of ['worker_threads', 'http', 'inspector', 'crypto', 'zlib']) t.false(modules.includes(name), name)
})
