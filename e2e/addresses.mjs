// Makes one call with each JavaScript expression of docs/dialects.md: arguments are the
// proxy's address and then an expression and its dialect, again and again. It prints a
// JSON object for each, with an exception only where the SDK could not be set up.
const [address, ...rows] = process.argv.slice(2);
const report = (line) => process.stdout.write(JSON.stringify(line) + '\n');
console.log = console.info = console.error; // SDKs print as well

// Where each name in the expressions comes from.
const packages = {
  OpenAI: 'openai', AzureOpenAI: 'openai', createOpenAI: '@ai-sdk/openai',
  Anthropic: '@anthropic-ai/sdk', createAnthropic: '@ai-sdk/anthropic',
  GoogleGenAI: '@google/genai', createGoogleGenerativeAI: '@ai-sdk/google',
  BedrockRuntimeClient: '@aws-sdk/client-bedrock-runtime', NodeHttpHandler: '@smithy/node-http-handler',
  createAmazonBedrock: '@ai-sdk/amazon-bedrock',
  Ollama: 'ollama', StreamableHTTPClientTransport: '@modelcontextprotocol/client',
};
for (const name of ['OPENAI_API_KEY', 'AZURE_OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY', 'AWS_BEARER_TOKEN_BEDROCK']) {
  process.env[name] = 'not-a-real-key';
}

process.env.AWS_REGION = 'us-east-1';

const prompt = 'What is the capital of France?';
const messages = [{ role: 'user', content: prompt }];
const calls = {
  openai_chat: (c) => c.chat.completions.create({ model: 'm', messages }),
  openai_responses: (c) => c.responses.create({ model: 'm', input: prompt }),
  anthropic_messages: (c) => c.messages.create({ model: 'm', max_tokens: 9, messages }),
  gemini_generate: (c) => c.models.generateContent({ model: 'm', contents: prompt }),
  bedrock_converse: async (c) => {
    const { ConverseCommand } = await import('@aws-sdk/client-bedrock-runtime');
    await c.send(new ConverseCommand({ modelId: 'm', messages: [{ role: 'user', content: [{ text: prompt }] }] }));
  },
  ollama_chat: (c) => c.chat({ model: 'm', messages }),
  mcp: async (transport) => {
    const { Client } = await import('@modelcontextprotocol/client');
    await new Client({ name: 'e2e', version: '1' }).connect(transport);
  },
};

for (let i = 0; i + 1 < rows.length; i += 2) {
  const [expression, dialect] = rows.slice(i, i + 2);
  const name = `${dialect}: ${expression}`;
  try {
    const constructor = /^(?:new )?(\w+)\(/.exec(expression)[1];
    const names = Object.keys(packages).filter((n) => new RegExp(`\\b${n}\\(`).test(expression));
    const values = await Promise.all(names.map(async (n) => (await import(packages[n]))[n]));
    const client = new Function(...names, `return ${expression.replaceAll('http://localhost:8080', address)}`)(...values);
    if (constructor.startsWith('create')) {
      const { generateText } = await import('ai');
      const model = client.doGenerate ? client : client('m');
      await generateText({ model, prompt, maxRetries: 0 }).catch(() => {});
    } else {
      await calls[dialect](client).catch(() => {}); // the model behind the proxy speaks one dialect only
    }
    report({ name });
  } catch (e) {
    report({ name, exception: `${e.constructor.name}: ${e.message}` });
  }
}
process.exit(0);
