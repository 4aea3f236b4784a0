'use strict'

// The type of the options. Generated from the table in options.js (npm run docs); never loaded.

/**
 * @typedef {import('./stacks/chain').HopFrame} Frame
 * @typedef {import('node:http').IncomingMessage} IncomingMessage
 *
 * @typedef {object} Options
 * @property {string[]} filter capture stacks only for resources of these subsystems; default ['*']
 * @property {number} frames frames captured per hop; default 10
 * @property {number} depth hops printed per chain; default 16
 * @property {'auto' | 'native' | 'js'} capture the capture engine; auto is native if the addon loads, else
 *   js; default auto
 * @property {boolean} internals show everything: node: frames, raw types, Node's own hops and longstack's
 *   frames; default off
 * @property {'node_modules' | RegExp | ((frame: Frame) => boolean)} hide collapse these frames into a count
 *   in text output; default node_modules
 * @property {boolean | 'print'} errors append hops to error stacks; default on
 * @property {boolean} listeners show where the failing event listener was registered; default off
 * @property {string | undefined} signal print open handles and who opened them on this signal; default none
 * @property {boolean} whyExit print what ended the process: a call, a signal, or pending awaits; default
 *   off
 * @property {import('./sinks/outputs').GivenOutputs | undefined} spans write a span for each request and
 *   connection to this destination; default none
 * @property {string | undefined} record record every callback to this file, for longstack report and
 *   longstack spans; default none
 * @property {string | undefined} box keep the last seconds of the process in this directory, for a report
 *   after it was killed; default none
 * @property {string | undefined} socket answer longstack why, top and similar commands on this Unix socket;
 *   default none
 * @property {boolean} propagate send a traceparent header with outgoing requests; default off
 * @property {boolean} peek read the verb and table, or the command, from the first bytes of queries;
 *   default off
 * @property {number | undefined} blocked report callbacks that block the event loop for longer than this,
 *   ms; default none
 * @property {number} budget memory limit for contexts and stacks, bytes; default 64 MiB (67108864)
 */

module.exports = {}
