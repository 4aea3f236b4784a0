// D3 is a global of the page; its own types would add six packages.
declare const d3: any
declare module 'd3-*'
