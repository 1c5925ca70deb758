package replicator.debezium;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.api.java.UDF3;

/**
 * Matches records against templates and captures what differs from the example. replicator/debezium/template.py builds
 * templates and documents their steps. One pass over the bytes of key and value, without backtracking.
 *
 * <p>Compiled on demand by Spark's own Janino (replicator/jvm/java_udfs.py): no lambdas, no generics, explicit casts.
 */
public final class Alike implements UDF3 {
    private static final long serialVersionUID = 1L;
    private static final byte[] NOTHING = new byte[0];
    private static final byte[][] NONE = new byte[0][];

    private final String spelled;
    private final int slots;
    private transient Map byTopic;

    /** Templates as template.py spells them, in sequence; the first that matches wins. */
    public Alike(String spelled, int slots) {
        this.spelled = spelled;
        this.slots = slots;
    }

    /** The number of the matching template and, in their slots, the captured bytes; NULL if none matches. */
    public Object call(Object topic, Object key, Object value) {
        if (byTopic == null) byTopic = read(spelled);
        List known = key == null ? null : (List) byTopic.get(topic);
        byte[] text = value == null ? NOTHING : (byte[]) value;
        if (Json.isTooLong(text)) return null;
        byte[][] found = null;
        for (int at = 0; known != null && found == null && at < known.size(); at++) {
            found = ((Template) known.get(at)).match((byte[]) key, text, slots);
        }
        return found;
    }

    /** Templates by topic; a template's steps are parsed when it is first used. */
    private static Map read(String spelled) {
        Map found = new HashMap();
        String[] each = spelled.split("\u001d");
        for (int number = 0; number < each.length; number++) {
            String[] parts = each[number].split("\u001e", -1);
            if (!found.containsKey(parts[0])) found.put(parts[0], new ArrayList());
            ((List) found.get(parts[0])).add(new Template(number, parts));
        }
        return found;
    }

    private static final class Template {
        private final byte[] number;
        private final byte[] before;
        private final byte[] after;
        private final byte[][] marks;
        private final String[] parts;
        private Step[] key;
        private Step[] value;

        Template(int number, String[] parts) {
            this.number = Json.bytes(String.valueOf(number));
            this.marks = Json.parts(parts[1], "\u001f");
            this.before = Json.bytes(parts[2]);
            this.after = Json.bytes(parts[3]);
            this.parts = parts;
        }

        byte[][] match(byte[] keyText, byte[] valueText, int slots) {
            if (value == null) {
                key = steps(parts[4]);
                value = steps(parts[5]);
            }
            int[] spans = new int[2 * slots];
            if (!matches(key, keyText, spans, marks) || !matches(value, valueText, spans, marks)) return null;
            byte[][] found = new byte[slots][];
            found[0] = number;
            for (int slot = 1; slot < slots - 1; slot++) found[slot] = cut(valueText, spans, slot, NOTHING, NOTHING);
            found[slots - 1] = cut(valueText, spans, slots - 1, before, after);
            return found;
        }
    }

    /** One step: a letter for what is expected, with a constant text or a slot. */
    private static final class Step {
        private final char kind;
        private final byte[] text;
        private final int slot;
        private int end;

        Step(String spelled) {
            this.kind = spelled.charAt(0);
            this.text = Json.bytes(spelled.substring(1));
            this.slot = kind == '(' || kind == ')' ? Integer.parseInt(spelled.substring(1)) : 0;
        }
    }

    private static Step[] steps(String spelled) {
        String[] each = spelled.isEmpty() ? new String[0] : spelled.split("\u001f");
        Step[] steps = new Step[each.length];
        int[] open = new int[each.length];
        int depth = 0;
        for (int at = 0; at < each.length; at++) {
            steps[at] = new Step(each[at]);
            if (steps[at].kind == '?') open[depth++] = at;
            if (steps[at].kind == '!') steps[open[--depth]].end = at;
        }
        return steps;
    }

    private static boolean matches(Step[] steps, byte[] text, int[] spans, byte[][] marks) {
        int at = 0;
        for (int next = 0; next < steps.length; next++) {
            Step step = steps[next];
            switch (step.kind) {
                case '=': at = Json.literal(text, at, step.text); break;
                case '?':
                    if (Json.literal(text, at, Json.NULL) != Json.NO) {
                        at += Json.NULL.length;
                        next = step.end;
                    }
                    break;
                case '!': break;
                case '(': spans[2 * step.slot] = at; break;
                case ')': spans[2 * step.slot + 1] = at; break;
                case 'o': at = Json.oneOf(text, at, step.text); break;
                case 's': at = Json.string(text, at); break;
                case 'n': at = Json.number(text, at); break;
                case 'v': at = value(text, at, marks); break;
                case 'a': at = value(text, at, NONE); break;
                case 'l': at = list(text, at, marks); break;
                case 'k': at = ofKey(text, at); break;
                case 'i': at = Json.whole(text, at, 18); break;
                case 'd': at = Json.digits(text, at, 18); break;
                case 'p': at = plain(text, at); break;
                default: throw new IllegalStateException("no step " + step.kind);
            }
            if (at == Json.NO) return false;
        }
        return at == text.length;
    }

    /** A text that does not begin with a mark, a number, a boolean, or null. */
    private static int value(byte[] text, int at, byte[][] marks) {
        switch (Json.byteAt(text, at)) {
            case '"': return marked(text, at + 1, marks) ? Json.NO : Json.string(text, at);
            case 'n': return Json.literal(text, at, Json.NULL);
            default: return Json.bare(text, at);
        }
    }

    private static int list(byte[] text, int at, byte[][] marks) {
        if (Json.byteAt(text, at) != '[' || marked(text, at, marks)) return Json.NO;
        int next = at + 1;
        if (Json.byteAt(text, next) == ']') return next + 1;
        while (true) {
            next = value(text, next, marks);
            if (next == Json.NO) return Json.NO;
            if (Json.byteAt(text, next) == ']') return next + 1;
            if (Json.byteAt(text, next) != ',') return Json.NO;
            next++;
        }
    }

    /** Whether a mark is here, or first in a list or a map that the text contains as JSON. */
    private static boolean marked(byte[] text, int at, byte[][] marks) {
        int inner = at;
        if (Json.byteAt(text, at) == '[' || Json.byteAt(text, at) == '{') inner++;
        if (inner != at && Json.byteAt(text, inner) == '\\' && Json.byteAt(text, inner + 1) == '"') inner += 2;
        for (int mark = 0; mark < marks.length; mark++) {
            if (Json.literal(text, at, marks[mark]) != Json.NO) return true;
            if (inner != at && Json.literal(text, inner, marks[mark]) != Json.NO) return true;
        }
        return false;
    }

    /** A text between quotes without escapes and braces, a number, or a boolean. */
    private static int ofKey(byte[] text, int at) {
        switch (Json.byteAt(text, at)) {
            case '"':
                int next = at + 1;
                while (Json.isPlain(Json.byteAt(text, next)) && text[next] != '{') next++;
                return Json.byteAt(text, next) == '"' ? next + 1 : Json.NO;
            default: return Json.bare(text, at);
        }
    }

    private static int plain(byte[] text, int at) {
        int next = Json.behindPlain(text, at);
        return next == at ? Json.NO : next;
    }

    /** The bytes captured for a slot, between two texts; NULL if nothing was. */
    private static byte[] cut(byte[] text, int[] spans, int slot, byte[] before, byte[] after) {
        int start = spans[2 * slot], size = spans[2 * slot + 1] - start;
        if (size == 0) return null;
        byte[] found = new byte[before.length + size + after.length];
        System.arraycopy(before, 0, found, 0, before.length);
        System.arraycopy(text, start, found, before.length, size);
        System.arraycopy(after, 0, found, before.length + size, after.length);
        return found;
    }
}
