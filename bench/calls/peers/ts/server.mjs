// The official TypeScript SDK: its low-level Server on its own stdio transport.
// Like its Python twin it does not apply the input schema.
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const ECHO = {
  name: "echo",
  description: "Answer the arguments as JSON text.",
  inputSchema: {
    type: "object",
    properties: { text: { type: "string" }, n: { type: "integer" } },
    required: ["text"],
    additionalProperties: false,
  },
};

const server = new Server(
  { name: "typescript-sdk", version: "0" },
  { capabilities: { tools: {} } },
);

server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: [ECHO] }));
server.setRequestHandler(CallToolRequestSchema, async (request) => ({
  content: [{ type: "text", text: JSON.stringify(request.params.arguments ?? {}) }],
}));

await server.connect(new StdioServerTransport());
