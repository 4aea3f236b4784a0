'use strict'

// Generated code with source maps, like that of TypeScript and bundlers.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const ts = require('typescript')

const source = path.join(__dirname, '..', 'fixtures', 'maps', 'app.ts')
const text = fs.readFileSync(source, 'utf8')

/**
 * Compiles the fixture.
 * @param {object} [options]
 * @param {string} [options.name] of the source
 * @param {string} [options.after] text appended to it
 * @param {'cjs' | 'mjs'} [options.type]
 * @returns {{ code: string, map: any, source: string }} code without the comment that names the map
 */
function compile ({ name = 'app.ts', after = '', type = 'cjs' } = {}) {
  const given = text + after
  const { outputText, sourceMapText } = ts.transpileModule(given, {
    fileName: name,
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: type === 'cjs' ? ts.ModuleKind.CommonJS : ts.ModuleKind.ES2022,
      removeComments: true,
      sourceMap: true
    }
  })
  const map = JSON.parse(/** @type {string} */ (sourceMapText))
  map.sources = [name]
  map.sourcesContent = [given] // the source is not on disk
  return { code: outputText.replace(/^\/\/# sourceMappingURL=.*\n?/m, ''), map, source: given }
}

/** @param {unknown} map */
function inline (map) {
  return `//# sourceMappingURL=data:application/json;charset=utf-8;base64,${Buffer.from(JSON.stringify(map)).toString('base64')}\n`
}

/**
 * Makes a bundle of modules in one file, with the sections of an index map.
 * @param {Array<{ code: string, map: any }>} parts
 * @returns {{ code: string, map: any }}
 */
function bundle (parts) {
  let code = ''
  const sections = []
  for (const part of parts) {
    code += '(function () {\n'
    sections.push({ offset: { line: code.split('\n').length - 1, column: 0 }, map: part.map })
    code += `${part.code}})();\n`
  }
  return { code, map: { version: 3, file: 'bundle.js', sections } }
}

/** @param {Record<string, string>} files @returns {string} a new folder that contains them */
function folder (files) {
  const made = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'longstack-maps-'))
  for (const [name, content] of Object.entries(files)) fs.writeFileSync(path.join(made, name), content)
  return made
}

/**
 * Returns the position of a piece of the fixture, in V8's form.
 * @param {string} piece
 * @param {string} [given]
 * @returns {string} line:column, both from 1
 */
function place (piece, given = text) {
  const at = given.indexOf(piece)
  if (at === -1 || given.indexOf(piece, at + 1) !== -1) throw new Error(`${piece} is not once in the source`)
  const lines = given.slice(0, at).split('\n')
  return `${lines.length}:${lines[lines.length - 1].length + 1}`
}

/** Frames of the fixture's chain, hop by hop: the error's own, then those that led to it. */
const story = [
  [place('new Error(job.name)')],
  [place('setImmediate('), 'second', place('second(copy, done)')],
  [place('setTimeout('), 'first', place('first({ name'), 'start', place('start((error')]
]

module.exports = { compile, inline, bundle, folder, place, story }
