'use strict'

// A bundle as built with esbuild's keepNames: if two functions share a name, one is renamed, and
// Object.defineProperty restores its name. V8 takes the new name from the source, but reports the restored
// one.

const fs = require('node:fs')
const path = require('node:path')
const { obey } = require('../child')

const PAIRS = 100

/** @param {number} number @returns {string} two modules of a bundle that define functions of the same name */
function pair (number) {
  const name = `load${number}`
  return `
    // src/api${number}.js
    async function ${name}_2() { await 1; return Promise.resolve(1); }
    __name(${name}_2, "${name}");
    // src/page${number}.js
    async function ${name}() { return ${name}_2(); }
    __name(${name}, "${name}");
    functions.push(${name});`
}

const file = path.join(process.cwd(), 'bundle.js')
fs.writeFileSync(file, `
  var __defProp = Object.defineProperty;
  var __name = (target, value) => __defProp(target, "name", { value, configurable: true });
  var functions = [];
  ${Array.from({ length: PAIRS }, (_, number) => pair(number)).join('')}
  module.exports = functions;
`)
/** @type {Array<() => Promise<number>>} */
const functions = require(file)

/** @param {number} units */
async function run (units) {
  for (let i = 0; i < units; i++) await functions[i % PAIRS]()
  await new Promise((resolve) => setImmediate(resolve))
}

obey({ run })
