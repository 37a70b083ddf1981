var C,mt,Ii,de,Tn,Xe,gt,Qe,ht,En,An,_t,$e=Symbol.for("pv"),Je={},Ze=[],Li=/^m(i|n|o|s|text|space)$/,xn=Array.isArray,bt=Ze.slice,ve=Object.assign;function ye(e){
e&&e.parentNode&&e.remove()}function Ye(e,n,t,r,i){var o={type:e,props:n,key:t,ref:r,__k:null,__:null,__b:0,__e:null,__c:null,constructor:$e,__v:i||++mt,__i:-1,__u:0};return!i&&C.vnode&&C.
vnode(o),o}function T(e){return e.children}function Ve(e,n){this.props=e,this.context=n,this.__g=0}function pe(e,n){if(n==null)return e.__&&pe(e.__,e.__i+1);for(var t;n<e.
__k.length;n++)if((t=e.__k[n])&&t.__e)return t.__e;return typeof e.type!="function"||e.props.__P?null:pe(e)}function Oi(e){var n,t=e.__v,r=t.__e,i=[],o=[],a=e.__P;
a&&((n=ve({constructor:$e},t)).__v=t.__v+1,C.vnode&&C.vnode(n),Cn(a,n,t,e.__n,a.namespaceURI,32&t.__u?[r]:null,i,r||pe(t),32&t.__u,o),n.__v=t.__v,n.__.__k[n.__i]=
n,At(i,n,o),t.__=t.__e=null,n.__e!=r&&yt(n))}function yt(e){if((e=e.__)&&e.__c&&!e.props.__P)return e.__e=null,e.__k.some(function(n){return n&&(e.__e=n.__e)}),
yt(e)}function kn(e){(8&e.__g||(e.__g|=8,de.push(e),Xe++))&&Tn==C.debounceRendering||((Tn=C.debounceRendering)||queueMicrotask)(vt)}function vt(){try{for(var e,
n=1;de.length;)de.length>n&&de.sort(gt),e=de.shift(),n=de.length,8&e.__g&&Oi(e)}finally{(Xe=de.length)&&(Tn||queueMicrotask)(vt)}}function St(e,n,t,r,i,o,a,c,l,f,u){
var p,m,d,g,b,h,v=r.__k||Ze,w=n.length;for(l=Pi(t,n,v,l,w),p=0;p<w;p++)(d=t.__k[p])!=null&&(m=~d.__i&&v[d.__i]||Je,d.__i=p,h=Cn(e,d,m,i,o,a,c,l,f,u),g=d.__e,(m.
ref!=d.ref||8&m.__u)&&(m.ref&&Nn(m.ref,null,d,m),d.ref&&u.push(d.ref,d.__c||g,d)),b=b||g,4&d.__u?(l=wt(d,l,e,!m.__v),m.__e&&(m.__e=null)):typeof d.type=="functi\
on"&&h!==void 0?l=h:g&&(l=g.nextSibling),d.__u&=-21);return t.__e=b,l}function Pi(e,n,t,r,i){var o,a,c,l,f,u,p,m,d,g=t.length,b=g,h=0,v=0,w=e.__k=Array(i);for(o=
0;o<i;o++)(a=n[o])!=null&&typeof a!="boolean"&&typeof a!="function"?(typeof a!="object"||a.constructor===String?a=w[o]=Ye(null,a):xn(a)?a=w[o]=Ye(T,{children:a}):
a.constructor===$e&&a.__b?a=w[o]=Ye(a.type,a.props,a.key,a.ref,a.__v):w[o]=a,l=o+h,a.__=e,a.__b=e.__b+1,c=null,~(f=a.__i=Ri(a,t,l,b))&&(b--,(c=t[f])&&(c.__u|=2)),
c&&c.__v?(a.__u|=16,f==l-1?h--:f==l+1?h++:f!=l&&(f>l?h--:h++,v=1)):(~f||(i>g?h--:i<g&&h++),typeof a.type!="function"&&(a.__u|=4))):w[o]=null;if(v){for(u=[],p=[],
o=0;o<i;o++)if((a=w[o])&&16&a.__u){for(h=0,m=u.length;h<m;)u[d=h+m>>1]<a.__i?h=d+1:m=d;u[h]=a.__i,p[o]=h+1}for(h=u.length;o--;)p[o]&&(p[o]==h?h--:w[o].__u|=4)}if(b)
for(o=0;o<g;o++)!(c=t[o])||2&c.__u||(c.__e==r&&(r=pe(c)),In(c,c));return r}function wt(e,n,t,r){var i,o,a,c;if(typeof e.type=="function"){if(e.props.__P)return n;
if(i=e.__k)for(o=0;o<i.length;o++)i[o]&&(i[o].__=e,n=wt(i[o],n,t,!1));return n}for(n&&!n.parentNode&&(n=pe(e))&&!n.parentNode&&(n=null),a=e.__e,c=n;c&&c.nodeType==
8;)c=c.nextSibling;for(a!=c&&(!r&&t.moveBefore&&a.parentNode?t.moveBefore(a,n):t.insertBefore(a,n||null)),n=a;(n=n&&n.nextSibling)&&n.nodeType==8&&!n.data.startsWith(
"$s"););return n}function Ri(e,n,t,r){var i,o=e.key,a=e.type,c=n[t],l=c&&!(2&c.__u);if(c===null&&o==null||l&&o==c.key&&a==c.type)return t;if(r>(l?1:0)){for(i=t-1;i>=0;i--)if((c=
n[i])&&!(2&c.__u)&&o==c.key&&a==c.type)return i;for(i=t+1;i<n.length;i++)if((c=n[i])&&!(2&c.__u)&&o==c.key&&a==c.type)return i}return-1}function pt(e,n,t){t==null&&
(t=""),n[0]=="-"?e.setProperty(n,t):e[n]=t}function He(e,n,t,r,i){var o,a;if(n=="style")if(typeof t=="string")e.style.cssText=t;else{if(typeof r=="string"&&(e.style.
cssText=r=""),r)for(n in r)t&&n in t||pt(e.style,n);if(t)for(n in t)r&&t[n]==r[n]||pt(e.style,n,t[n])}else if(n[0]=="o"&&n[1]=="n")typeof t!="function"&&(t=null),
typeof r!="function"&&(r=null),(e.__e||(e.__e={}))[n]=t,t&&r||(a=An[n]||(An[n]=$i(n)),(e.__a||(e.__a={}))[n]=En,o=n!=(n=n.replace(ht,"$1")),(n=n.slice(2))[0]<"a"&&
(n=n.toLowerCase()),t?e.addEventListener(n,a,o):e.removeEventListener(n,a,o));else{if(i=="http://www.w3.org/2000/svg")n=n.replace(/xlink(H|:h)/,"h").replace(/sName$/,
"s");else if(n!="width"&&n!="height"&&n!="href"&&n!="list"&&n!="form"&&n!="tabIndex"&&n!="download"&&n!="rowSpan"&&n!="colSpan"&&n!="role"&&n!="popover"&&n in e)
try{return void(e[n]=t??"")}catch{}if(typeof t=="function")return;t==null||t===!1&&n[4]!="-"?e.removeAttribute(n):e.setAttribute(n,n=="popover"&&t==1?"":t)}}function $i(e){
return function(n){var t=this.__e;if(t){if(t=t[e],n[Qe]==null)n[Qe]=En++;else if(n[Qe]<this.__a[e])return;return t(C.event?C.event(n):n)}}}function Cn(e,n,t,r,i,o,a,c,l,f){
var u,p,m,d,g,b,h,v,w,S,y,P,B,J,se,dt,fe,be,ae=n.type;if(n.constructor!==$e)return null;128&t.__u&&(l=32&t.__u,u=t.__c.__z)&&(n.__u|=l,p=o=[],u.nodeType==8?c=ze(
u,o):o.push(u),c=o[0]||c),(u=C.__b)&&u(n);e:if(typeof ae=="function"){m=a.length;try{if(v=n.props,w=(u=ae.prototype)&&u.render,S=(u=ae.contextType)&&r[u.__c],y=
u?S?S.props.value:u.__:r,(d=t.__c)?(n.__c=d,2&d.__g&&(d.__g|=1)):(w?n.__c=d=new ae(v,y):(n.__c=d=new Ve(v,y),d.constructor=ae,d.render=Fi),S&&S.sub(d),d.state||
(d.state={}),d.__n=r,d.__g|=8,d.__h=[],d.__k=[]),w&&(d.__s||(d.__s=d.state),ae.getDerivedStateFromProps&&(d.__s==d.state&&(d.__s=ve({},d.__s)),ve(d.__s,ae.getDerivedStateFromProps(
v,d.__s)))),g=d.props,b=d.state,d.__v=n,t.__c){if(v!==g&&w&&!ae.getDerivedStateFromProps&&d.componentWillReceiveProps&&d.componentWillReceiveProps(v,y),n.__v==t.
__v&&!(8&d.__g)||!(4&d.__g)&&d.shouldComponentUpdate&&d.shouldComponentUpdate(v,d.__s,y)===!1){n.__v!=t.__v&&(d.props=v,d.state=d.__s,d.__g&=-9),n.__e=t.__e,n.__k=
t.__k,n.__k.some(function(Z){Z&&(Z.__=n)}),Ze.push.apply(d.__h,d.__k),d.__k=[],d.__h.length&&a.push(d),c=pe(t);break e}d.componentWillUpdate&&d.componentWillUpdate(
v,d.__s,y),w&&d.componentDidUpdate&&d.__h.push(function(){d.componentDidUpdate(g,b,h)})}else w&&!ae.getDerivedStateFromProps&&d.componentWillMount&&d.componentWillMount(),
w&&d.componentDidMount&&d.__h.push(d.componentDidMount);d.context=y,d.props=v,d.__P=e,d.__g&=-5,P=C.__r,B=w?25:0;do d.__g&=-9,P&&P(n),u=d.render(d.props,d.state=
d.__s,d.context);while(8&d.__g&&++B<25);w&&(Ze.push.apply(d.__h,d.__k),d.__k=[]),d.state=d.__s,d.getChildContext&&(r=ve({},r,d.getChildContext())),w&&t.__c&&d.getSnapshotBeforeUpdate&&
(h=d.getSnapshotBeforeUpdate(g,b)),J=u&&u.type===T&&u.key==null?u.props.children:u,v.__P&&(u=c,i=(e=v.__P).namespaceURI,l=o=null,t.props&&t.props.__P!=e&&(t.__k.
some(function(Z){Z&&In(Z,Z)}),t.__k=null),c=t.__k?pe(t,0):null),c=St(e,xn(J)?J:[J],n,t,r,i,o,a,c,l,f),v.__P&&(n.__e=null,c=u),n.__u&=-161,p&&p.some(ye),d.__h.length&&
a.push(d),1&d.__g&&(d.__g&=-4)}catch(Z){if(a.length=m,n.__v=null,l||o)if(Z&&Z.then){if(n.__u|=128|l,o){for(~(fe=o.indexOf(c||void 0))||(fe=o.length);(be=o[fe-1])&&
be.nodeType==8;)fe--;for(;fe<o.length;fe++)if(be=o[fe])if(o[fe]=null,se){if(be==dt)break}else{if(be.nodeType!=8)break;be.data.startsWith("$s")&&(dt=ze(se=be))}}
if(!se){for(;c&&c.nodeType==8&&c.nextSibling;)c=c.nextSibling;se=c}(u=ze(se=n.__c.__z||(n.__c.__z=se)))?(n.__e=se,c=u):n.__e=c,c=c&&c.nextSibling}else o&&o.some(
ye);else n.__e=t.__e;n.__k||(n.__k=t.__k||[]),Z&&Z.then||Tt(n),C.__e(Z,n,t)}}else c=n.__e=Mi(t.__e,n,t,r,i,o,a,l,f,e);return(u=C.diffed)&&u(n),c}function ze(e,n){
if(e&&e.nodeType==8&&e.data.startsWith("$s"))for(var t=1;e=e.nextSibling;){if(e.nodeType==8){if(e.data.startsWith("$s"))t++;else if(e.data.startsWith("/$s")&&!--t)
return e}n&&n.push(e)}}function Tt(e){e&&(e.__c&&(e.__c.__g|=4),e.__k&&e.__k.some(Tt))}function At(e,n,t){for(var r=0;r<t.length;)Nn(t[r++],t[r++],t[r++]);C.__c&&
C.__c(n,e),e.some(function(i){try{e=i.__h,i.__h=[],e.some(function(o){o.call(i)})}catch(o){C.__e(o,i.__v)}})}function Mi(e,n,t,r,i,o,a,c,l,f){var u,p,m,d,g,b,h,
v,w=t.props||Je,S=n.props,y=n.type;if(y=="svg"?i="http://www.w3.org/2000/svg":y=="math"?i="http://www.w3.org/1998/Math/MathML":i||(i="http://www.w3.org/1999/xht\
ml"),o){for(u=0;u<o.length;u++)if((g=o[u])&&(y?g.localName==y:g.nodeType==3)){e=g,o[u]=null;break}}if(!e){if(v=f.ownerDocument||document,!y)return v.createTextNode(
S);e=v.createElementNS(i,y,S.is?S:f),c&&(C.__m&&C.__m(n,o),c=!1),o=null}if(y){if(f=y=="template"&&e.content||e,o=y=="textarea"&&S.defaultValue!=null?null:o&&bt.
call(f.childNodes),!c&&o)for(w={},u=0;u<e.attributes.length;u++)w[(g=e.attributes[u]).name]=g.value;for(u in w)g=w[u],u=="dangerouslySetInnerHTML"?m=g:u=="child\
ren"||u in S||u=="value"&&"defaultValue"in S||u=="checked"&&"defaultChecked"in S||He(e,u,null,g,i);for(u in S)g=S[u],u=="children"?d=g:u=="dangerouslySetInnerHT\
ML"?p=g:u=="value"?b=g:u=="checked"?h=g:c&&typeof g!="function"||w[u]===g||He(e,u,g,w[u],i);p?(c||m&&(p.__html==m.__html||p.__html==e.innerHTML)||(e.innerHTML=p.
__html),n.__k=[]):(m&&(e.textContent=""),(y=="foreignObject"||i=="http://www.w3.org/1998/Math/MathML"&&Li.test(y))&&(i="http://www.w3.org/1999/xhtml"),St(f,xn(d)?
d:[d],n,t,r,i,o,a,o?o[0]:t.__k&&pe(t,0),c,l),o&&o.some(ye)),c&&y!="textarea"||(u="value",y=="progress"&&b==null?e.removeAttribute(u):b==null||b===e[u]&&(y!="pro\
gress"||b)||He(e,u,b,w[u],i),u="checked",h!=null&&h!=e[u]&&He(e,u,h,w[u],i))}else w===S||c&&e.data==S||(e.data=S);return e}function Nn(e,n,t,r){try{typeof e=="f\
unction"?n?n.__x=e(n)||1:r&&(r=r.__c||r.__e)&&(n=r.__x)&&(r.__x=null,typeof n=="function"?n():e(null)):e.current=n}catch(i){C.__e(i,t)}}function In(e,n,t){var r,
i,o,a;if(C.unmount&&C.unmount(e),!(r=e.ref)||r.current&&r.current!=e.__e||Nn(r,null,n,e),r=e.__c){if(r.componentWillUnmount)try{r.componentWillUnmount()}catch(c){
C.__e(c,n)}r.__P=r.__n=null}if(r=e.__k)for(a=0;a<r.length;a++)r[a]&&In(r[a],n,typeof e.type!="function"||t&&!e.props.__P);!t&&(r=e.__c)&&(r=r.__z)&&(i=ze(r,o=[]))&&
(r==e.__e&&o.some(ye),ye(i),ye(r)),t||ye(e.__e),e.__e=e.__c=e.__=null}function Fi(e,n,t){return this.constructor(e,t)}function kt(e,n){var t,r,i,o;C.__&&C.__(e,
n),n.nodeType==9&&(n=n.documentElement),r=(t=e&&32&e.__u)?null:n.__k,n.__k=Ye(T,{children:[e]}),i=[],o=[],Cn(n,n.__k,r||Je,Je,n.namespaceURI,r?null:n.firstChild?
bt.call(n.childNodes):null,i,r?r.__e:n.firstChild,t,o),At(i,n.__k,o),n.__k.props.children=null}function Et(e){function n(t){var r,i;return this.getChildContext||(r=new Set,(i={})[n.__c]=this,this.getChildContext=function(){return i},this.shouldComponentUpdate=
function(o){this.props.value!=o.value&&r.forEach(function(a){a.__g|=4,kn(a)})},this.sub=function(o){r.add(o);var a=o.componentWillUnmount;o.componentWillUnmount=
function(){r.delete(o),a&&a.call(o)}}),t.children}return n.__c="__cC"+_t++,n.__=e,n.Provider=(n.Consumer=function(t,r){return t.children(r)}).contextType=n,n}C={__e:function(e,n,t,r){for(var i,o,a;n=n.__;)if((i=n.__c)&&!(1&i.__g)){i.__g|=4;try{if((a=(o=i.constructor)&&o.getDerivedStateFromError)&&i.setState(o.getDerivedStateFromError(
e)),i.componentDidCatch&&(i.componentDidCatch(e,r||{}),a=1),a&&8&i.__g)return void(i.__g|=2)}catch(c){e=c}}throw Xe=0,e}},mt=0,Ii=function(e){return e!=null&&e.
constructor===$e},Ve.prototype.setState=function(e,n){var t=this.__s;t&&t!=this.state||(t=this.__s=ve({},this.state)),typeof e=="function"&&(e=e(ve({},t),this.props)),
e&&(ve(t,e),this.__v&&(n&&this.__k.push(n),kn(this)))},Ve.prototype.forceUpdate=function(e){this.__v&&(this.__g|=4,e&&this.__h.push(e),kn(this))},Ve.prototype.render=
T,de=[],Xe=0,gt=function(e,n){return e.__v.__b-n.__v.__b},Qe=Symbol(),ht=/(PointerCapture)$|Capture$/i,En=0,An={},_t=0;var Te,R,Ln,xt,On=Object.is,en=0,Mt=[],Pn=[],$=C,Ct=$.__b,Nt=$.__r,It=$.diffed,Lt=$.__c,Ot=$.unmount,Pt=$.__;function nn(e,n){$.__h&&$.__h(R,e,en||n),en=0;var t=R.
__H||(R.__H={__:[],__h:[]});return e>=t.__.length&&t.__.push({}),t.__[e]}function N(e){return en=1,$n(Bt,e)}function $n(e,n,t){var r=nn(Te++,2);if(r.t=e,!r.__c&&
(r.__=[t?t(n):Bt(void 0,n),function(o){var a=(r.__N||r.__)[0],c=r.t(a,o);On(a,c)||(r.__N=[c,r.__[1]],r.__c.setState({}))}],r.__c=R,!R.__f)){R.__f=!0;var i=R.shouldComponentUpdate;
R.shouldComponentUpdate=function(o,a,c){var l=this.__H;if(!l)return!0;var f=!1,u=this.props!=o;if(l.__.some(function(m){m.__N&&(f=!0,On(m.__[0],m.__N[0])||(u=!0))}),
i){var p=i.call(this,o,a,c);return f?p||u:p}return!f||u}}return r.__}function q(e,n){var t=nn(Te++,3);!$.__s&&Dt(t.__H,n)&&(t.__P=!0,t.__=e,t.u=n,R.__H.__h.push(
t))}function ce(e){return en=5,x(function(){return{current:e}},[])}function x(e,n){var t=nn(Te++,7);return Dt(t.__H,n)&&(t.__=e(),t.__H=n),t.__}function Ft(e){var n=R.context[e.__c],t=nn(Te++,9);return t.c=e,n?(t.__==null&&(t.__=!0,n.sub(R)),n.props.value):e.__}function Di(){var e;do{for(;e=Pn.shift();)try{Me(e)}catch(t){$.__e(t,{__:(e=e.__P)&&e.__v})}for(;e=Mt.shift();){var n=e.__H;if(e.__P&&n)try{n.__h.some(Me),n.__h.
some(Rn),n.__h=[]}catch(t){n.__h=[],$.__e(t,e.__v)}}}while(Pn.length)}$.__b=function(e){R=null,Ct&&Ct(e)},$.__=function(e,n){e&&n.__k&&n.__k.__m&&(e.__m=n.__k.__m),
Pt&&Pt(e,n)},$.__r=function(e){Nt&&Nt(e),Te=0;var n=(R=e.__c).__H;n&&(Ln==R?R.__h=[]:(n.__h.some(Me),n.__h.some(Rn),Te=0),n.__h=[],n.__.some(function(t){t.__N&&
(t.__=t.__N),t.u=t.__N=void 0})),Ln=R},$.diffed=function(e){It&&It(e);var n=e.__c;n&&n.__H&&(n.__H.__h.length&&$t(Mt.push(n)),n.__H.__.some(function(t){t.u&&(t.
__H=t.u)})),Ln=R=null},$.__c=function(e,n){n.some(function(t){try{t.__h.some(Me),t.__h=t.__h.filter(function(r){return!r.__||Rn(r)})}catch(r){t.__h=[function(){
throw r}]}}),Lt&&Lt(e,n)},$.unmount=function(e){Ot&&Ot(e);var n,t,r=e.__c;r&&r.__H&&(r.__H.__.some(function(i){try{if(i.__P&&i.__c){if(t===void 0){for(t=e.__;t&&
(!t.__c||!t.__c.__P);)t=t.__;t=t&&t.__c}i.__P=t,$t(Pn.push(i))}else Me(i)}catch(o){n=o}}),r.__H=void 0,n&&$.__e(n,r.__v))};var Rt=typeof requestAnimationFrame==
"function";function Bi(e){var n,t=function(){clearTimeout(r),Rt&&cancelAnimationFrame(n),setTimeout(e)},r=setTimeout(t,35);Rt&&(n=requestAnimationFrame(t))}function $t(e){
e!=1&&xt==$.requestAnimationFrame||((xt=$.requestAnimationFrame)||Bi)(Di)}function Me(e){var n=R,t=e.__c;typeof t=="function"&&(e.__c=void 0,t()),R=n}function Rn(e){
var n=R;e.__c=e.__(),R=n}function Dt(e,n){return!e||e.length!=n.length||n.some(function(t,r){return!On(t,e[r])})}function Bt(e,n){return typeof n=="function"?n(
e):n}var tn=class{decoder=new TextDecoder;rest="";take(n){let t=(this.rest+this.decoder.decode(n,{stream:!0})).split(`
`);if(this.rest=t.pop()??"",this.rest.length>4194304)throw new Error("the watch sent a line that is too long");return t.filter(Boolean).map(r=>JSON.parse(r))}};var Fe="/apis/visibility.tutti.dev/v1alpha1",Ut=120,Ui=100,Y=class extends Error{constructor(t,r,i=0,o){super(r);this.status=t;this.retryAfterMs=i;this.noUser=o}status;retryAfterMs;noUser},
rn=class{constructor(n,t){this.token=n;this.onUser=t}token;onUser;known=new Map;async check(){await this.fetched(Fe,{})}async list(n,t){let r=`${Fe}/${n}`,i=this.
known.get(r),o=i?{"If-None-Match":i.etag}:{},a=await this.fetched(r,{headers:o,signal:t});if(a.status===304&&i)return i.listed;let c=await this.read(r,a,t),l=a.
headers.get("ETag");return l&&this.known.set(r,{etag:l,listed:c}),c}async read(n,t,r){let i=/"(.*)"/.exec(t.headers.get("Warning")??"")?.[1]??"",o=await t.json(),
a={items:o.items,version:o.metadata.resourceVersion??"",warning:i};for(let c=0;o.metadata.continue&&c<Ui;c++){let l=`${n}?continue=${encodeURIComponent(o.metadata.
continue)}`;o=await(await this.fetched(l,{signal:r})).json(),a.items=a.items.concat(o.items)}return a}async get(n,t){return await(await this.fetched(`${Fe}/${n}`,
{signal:t})).json()}async*watch(n,t,r){let i=new URLSearchParams({watch:"true",resourceVersion:t,allowWatchBookmarks:"true",timeoutSeconds:String(Ut)}),o=AbortSignal.
any([r,AbortSignal.timeout((Ut+10)*1e3)]),c=(await this.fetched(`${Fe}/${n}?${i}`,{signal:o})).body.getReader(),l=new tn;for(;;){let{done:f,value:u}=await c.read();
if(f)return;yield l.take(u)}}async fit(n,t,r){let i=JSON.stringify({apiVersion:"visibility.tutti.dev/v1alpha1",kind:"Fit",metadata:{name:"question"},spec:{manifests:t}}),
o=`${Fe}/namespaces/${encodeURIComponent(n)}/fits`,a={"Content-Type":"application/json"};return await(await this.fetched(o,{method:"POST",headers:a,body:i,signal:r})).
json()}async fetched(n,t){let r=new Headers(t.headers);r.set("Accept","application/json"),this.token&&r.set("Authorization",`Bearer ${this.token}`);let i;try{i=
await fetch(n,{...t,headers:r,cache:"no-store",redirect:"manual"})}catch(a){throw t.signal?.aborted?a:new Y(0,"the server does not answer")}let o=await Gi(i);if((!o||
o.noUser)&&this.onUser(o?.noUser),o)throw o;return i}};async function Gi(e){let n=o=>new Y(o,"the login has ended",0,"login wanted");if(e.type==="opaqueredirect")
return n(e.status);if(e.status===304)return;if(e.ok)return qi(e)?void 0:n(e.status);let t=await Ki(e),r=Number(e.headers.get("Retry-After")??0)*1e3||0;if(e.status!==
401)return new Y(e.status,t||ji(e),r);if(!t)return n(401);let i=/\berror="?invalid_token/.test(e.headers.get("WWW-Authenticate")??"");return new Y(401,t,0,i?"to\
ken refused":"token wanted")}function qi(e){return/^application\/json\b/.test(e.headers.get("Content-Type")??"")}async function Ki(e){try{let{kind:n,message:t}=await e.
json();return n==="Status"&&typeof t=="string"?t:""}catch{return""}}function ji(e){return`${e.status} ${e.statusText}`.trim()}var Wi=Symbol.for("pv"),Hi=0;function s(e,n,t,r,i,o){n||(n={});var a,c,l=n;if("ref"in l&&typeof e!="function")for(c in l={},n)c=="ref"?a=n[c]:l[c]=n[c];var f={type:e,props:l,key:t,ref:a,__k:null,
__:null,__b:0,__e:null,__c:null,constructor:Wi,__v:--Hi,__i:-1,__u:0};return(i||o)&&(f.__source=i,f.__self=o),C.vnode&&C.vnode(f),f}var Mn="tutti.address";function Gt(){sessionStorage.setItem(Mn,location.hash),location.reload()}function qt(){let e=sessionStorage.getItem(Mn);sessionStorage.removeItem(
Mn),e&&!location.hash&&history.replaceState(null,"",e)}function Kt({onToken:e,message:n}){let[t,r]=N(""),i=t.trim().replace(/^Bearer\s+/i,""),o=/^[\x21-\x7e]+$/.
test(i);return s("main",{class:"login",children:[s("h1",{children:"Tutti"}),s("form",{onSubmit:a=>{a.preventDefault(),o&&e(i)},children:[s("label",{for:"token",
children:"Bearer token of this cluster"}),s("input",{id:"token",type:"password",autocomplete:"off",spellcheck:!1,autofocus:!0,value:t,onInput:a=>r(a.currentTarget.
value)}),s("button",{type:"submit",disabled:!o,children:"Log in"})]}),n&&s("p",{class:"error",role:"alert",children:n}),s("p",{children:["For example ",s("code",
{children:"kubectl create token NAME -n NAMESPACE"}),". The token stays in this tab and is forgotten when the tab is closed. With a kubeconfig, ",s("code",{children:"\
tutti console"})," needs none."]})]})}function jt({why:e}){return s("main",{class:"login",children:[s("h1",{children:"Tutti"}),s("p",{class:"error",role:"alert",
children:Qt(e)}),s("p",{children:s("button",{type:"button",onClick:Gt,children:"Log in again"})}),e==="token refused"&&s("p",{children:["The proxy in front of t\
his page has logged you in and passed a token on. If it passes an old token on, log out there: oauth2-proxy does so at ",s("code",{children:"/oauth2/sign_out"}),
". If another login does not help, the API server does not trust the token's issuer or audience: the log of the API service has its reason."]})]})}function Wt({
message:e}){return s("main",{class:"login",children:[s("h1",{children:"Tutti"}),s("p",{class:"error",role:"alert",children:e}),s("p",{children:s("button",{type:"\
button",onClick:()=>location.reload(),children:"Try again"})})]})}function Ht({why:e}){return s("p",{class:"ended",role:"alert",children:[s("span",{children:[Qt(
e)," What is below is the last known state."]})," ",s("button",{type:"button",onClick:Gt,children:"Log in again"})]})}function Qt(e){return e==="token refused"?
"The cluster does not accept the token of your login.":"Your login has ended."}function I(e){let{namespace:n,name:t}=e.metadata;return n?`${n}/${t}`:t}function Yt(e,n,t){let r=e.filter(o=>o.metadata.namespace===n),i=r.filter(o=>o.metadata.
name===t);return i.length?i:r.filter(({metadata:o,status:a})=>{let c=a.owner||o.name;return t===c||t===`${c} (${a.dialect})`})}var Fn=2e3,Qi=50,Yi=2e3,Vi=1/3,zi=15e3,Xi=3e4,Ji=1e4,ee=class{constructor(n,t,r=!1,i){this.api=n;this.resource=t;this.watched=r;this.onRead=i}api;resource;watched;onRead;snapshot={
items:[],freshness:"loading",message:""};listeners=new Set;objects=new Map;ending;lingering;gathering;watchAgainAt=0;drawingMs=0;subscribe(n){return this.listeners.
add(n),clearTimeout(this.lingering),this.ending||(this.ending=new AbortController,this.run(this.ending.signal)),()=>{this.listeners.delete(n),!this.listeners.size&&
(this.lingering=setTimeout(()=>this.stop(),Ji))}}stop(){this.ending?.abort(),this.ending=void 0}async run(n){let t=0;for(;!n.aborted;)try{await eo(n),await this.
follow(n),t=0}catch(r){if(n.aborted)return;t+=1;let i=r instanceof Y?r.retryAfterMs:0,o=r instanceof Y&&r.status===403;o&&this.objects.clear(),this.publish(o?"f\
orbidden":"failed",r instanceof Error?r.message:String(r)),await on(Math.max(i,Math.min(zi,1e3*2**t)),n).catch(()=>{})}}async follow(n){let t=await this.api.list(
this.resource,n);this.onRead?.(t.items),this.objects.clear();for(let r of t.items)this.objects.set(I(r),r);(this.snapshot.freshness!=="live"||!Zi(this.snapshot.
items,t.items)||this.snapshot.message!==t.warning)&&this.publish("live",t.warning),this.watched&&Date.now()>=this.watchAgainAt?await this.watch(t.version,n):await on(
Fn,n)}async watch(n,t){try{let r=Date.now();for await(let i of this.api.watch(this.resource,n,t)){for(let{type:o,object:a}of i){if(o==="ERROR")throw new Y(a.code??
500,a.message??"the watch failed");o==="DELETED"?this.objects.delete(I(a)):o!=="BOOKMARK"&&this.objects.set(I(a),a)}i.some(o=>o.type!=="BOOKMARK")&&this.publishSoon()}
Date.now()-r<Fn&&await on(Fn,t)}catch(r){if(t.aborted)throw r;r instanceof Y&&r.status===410||(this.watchAgainAt=Date.now()+Xi)}}publishSoon(){this.gathering??=
setTimeout(()=>this.publish("live",this.snapshot.message),Math.min(Yi,Math.max(Qi,this.drawingMs/Vi)))}publish(n,t){clearTimeout(this.gathering),this.gathering=
void 0,this.snapshot={items:[...this.objects.values()],freshness:n,message:t};let r=performance.now();for(let i of[...this.listeners])i();setTimeout(()=>{this.drawingMs=
performance.now()-r})}};function Zi(e,n){return e.length===n.length&&e.every((t,r)=>t===n[r])}async function eo(e){for(;globalThis.document?.hidden;)await on(500,
e)}function on(e,n){return new Promise((t,r)=>{let i=()=>{clearTimeout(o),r(new Error("ended"))},o=setTimeout(()=>{n.removeEventListener("abort",i),t()},e);n.addEventListener(
"abort",i,{once:!0})})}function Vt(e,n){let t=[],r=e.metadata.creationTimestamp;r&&t.push({time:r,title:"Seen by Tutti",details:""});for(let{status:i}of zt(e,n)){let o=`${i.count} ${i.
count===1?"pod":"pods"}`,a=new Set((i.pods??[]).map(c=>c.node).filter(Boolean)).size;t.push({time:i.time,title:i.action==="Bind"?`Decided to bind ${o}`:`Decided\
 to evict ${o} for it`,details:[a?`on ${a} ${a===1?"node":"nodes"}`:"",i.domain?`in ${i.domain}`:"",i.attempt?`attempt ${i.attempt}`:"",i.message||i.reason||""].
filter(Boolean).join(", ")})}for(let i of e.status.conditions??[]){if(!i.lastTransitionTime)continue;let o=i.status==="False"?" (no longer)":"";t.push({time:i.lastTransitionTime,
title:`${i.type}${o}`,details:[i.reason,i.message].filter(Boolean).join(": ")})}return t.sort((i,o)=>Date.parse(i.time)-Date.parse(o.time))}function zt(e,n){let{
uid:t,creationTimestamp:r}=e.metadata,i=r?Date.parse(r):0;return n.filter(({status:o})=>o.gang===I(e)&&(o.gangId===t||Date.parse(o.time)>=i))}function Xt(e,n){let t=new Map;
for(let{status:i}of zt(e,n))if(i.action==="Bind")for(let o of i.pods??[])t.set(o.name,{name:o.name,node:o.node??""});let r=new Set((e.status.placement??[]).map(
i=>i.node));return[...t.values()].filter(i=>r.has(i.node)).sort((i,o)=>i.name<o.name?-1:1)}function Ae(e){let[n,t]=e.replace(/^#\/?/,"").split("?",2),[r,...i]=(n??"").split("/").map(no);return{page:r||"overview",parts:i,query:new URLSearchParams(t??"")}}
function no(e){try{return decodeURIComponent(e)}catch{return e}}function V(e,...n){return`#/${[e,...n].map(encodeURIComponent).join("/")}`}function Jt(e){if(!e||
!URL.canParse(e))return;let{protocol:n,href:t}=new URL(e);return n==="https:"||n==="http:"?t:void 0}function De(e){let n=e.indexOf("/");return V("gangs",e.slice(
0,n),e.slice(n+1))}var to={n:1e-9,u:1e-6,m:.001,"":1,k:1e3,M:1e6,G:1e9,T:1e12,P:1e15,E:1e18,Ki:1024,Mi:1048576,Gi:1073741824,Ti:1099511627776,Pi:0x4000000000000,Ei:1152921504606847e3},
ro=/^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)$/;function sn(e){let n=ro.exec(e??""),t=n?to[n[2]??""]:void 0,r=n&&t!==void 0?Number(n[1])*t:NaN;return Number.
isFinite(r)?r:void 0}function K(e){return sn(e)??0}function io(e){return e.endsWith("memory")||e.endsWith("storage")||e.includes("hugepages")}function re(e,n){let t=n<
0?"\u2212":"",r=Math.abs(n);if(r>0&&r<.9995)return`${t}${Zt(r*1e3)} m`;let[i,o,a]=io(e)?[1024,["","Ki","Mi","Gi","Ti","Pi","Ei"],1024]:[1e3,["","k","M","G","T",
"P","E"],1e4],c=r,l=0;for(;c>=(l?i:a)*.9995&&l<o.length-1;)c/=i,l+=1;return`${t}${Zt(c)} ${o[l]}`.trimEnd()}function Zt(e){return e>=99.95?String(Math.round(e)):
String(Number(e.toFixed(1)))}function ne(e){return e.slice(e.lastIndexOf("/")+1)}function me(e){let n=t=>t.includes("/")?0:t==="cpu"?1:t==="memory"?2:t==="pods"?
4:3;return[...e].sort((t,r)=>n(t)-n(r)||(t<r?-1:1))}function er(e){let n=new Map(e.map(a=>[a.metadata.name,a])),t=new Map;for(let a of e){let c=a.status.parent??"",l=n.has(c)&&c!==a.metadata.name?c:"";t.set(l,[...t.
get(l)??[],a])}let r=[],i=new Set,o=(a,c)=>{if(!i.has(a)){i.add(a),r.push({queue:a,depth:c});for(let l of Dn(t.get(a.metadata.name)??[]))o(l,c+1)}};for(let a of Dn(
t.get("")??[]))o(a,0);for(let a of Dn(e))o(a,0);return r}function Dn(e){return[...e].sort((n,t)=>n.metadata.name<t.metadata.name?-1:1)}function an(e){return(e.status.
resources??[]).map(n=>{let t=K(n.used),r=sn(n.deserved);return{resource:n.resource,used:t,wanted:K(n.wanted),promised:K(n.promised),reserved:K(n.reserved),guarantee:K(
n.guarantee),deserved:r,limit:sn(n.limit),borrowed:r===void 0?0:Math.max(0,t-r)}})}var oo=240,so=1e3,nr=2e3,ao=6e3,cn=class{instants=[];series=new Map;stepMs=nr;get since(){return this.instants[0]}take(n,t){t<(this.instants.at(-1)??0)&&this.clear(),
t-(this.instants.at(-2)??-1/0)<this.stepMs&&this.instants.pop();let r=this.instants.push(t)-1;for(let i of this.series.values())i.used[r]=i.deserved[r]=void 0;for(let i of n)
for(let o of an(i)){let a=this.seriesOf(i.metadata.name,o.resource,r+1);a&&(a.used[r]=o.used,a.deserved[r]=o.deserved)}this.instants.length>oo&&this.thin()}lines(n,t){
let r=this.series.get(tr(n,t)),i=[],o=-1/0;return this.instants.forEach((a,c)=>{let l=r?.used[c];l!==void 0&&((a-o>2*this.stepMs+ao||r?.used[c-1]===void 0)&&i.push(
[]),i.at(-1).push({at:a,used:l,deserved:r?.deserved[c]}),o=a)}),i}seriesOf(n,t,r){let i=tr(n,t),o=this.series.get(i);if(o||this.series.size>=so)return o;let a={
used:Array(r).fill(void 0),deserved:Array(r).fill(void 0)};return this.series.set(i,a),a}thin(){let n=this.instants.length-1,t=r=>r.filter((i,o)=>o%2===0||o===n);
this.instants=t(this.instants),this.stepMs*=2;for(let[r,i]of this.series)i.used=t(i.used),i.deserved=t(i.deserved),i.used.every(o=>o===void 0)&&this.series.delete(
r)}clear(){this.instants=[],this.series=new Map,this.stepMs=nr}};function tr(e,n){return JSON.stringify([e,n])}function ir(e,n,t,r,i){let o=Math.max(...e.flat().
map(u=>Math.max(u.used,u.deserved??0)),Number.MIN_VALUE),a=u=>rr(t>n?r*(u-n)/(t-n):r),c=u=>rr(i*(1-Math.max(0,u)/o)),l=(u,p)=>`${u.map((m,d)=>`${d?"L":"M"}${a(m.
at)} ${c(p(m))}`).join("")}${u.length===1?"h0":""}`,f=e.flatMap(u=>co(u,p=>p.deserved===void 0));return{used:e.map(u=>l(u,p=>p.used)).join(""),area:e.map(u=>`${l(
u,p=>p.used)}V${i}H${a(u[0].at)}Z`).join(""),deserved:f.map(u=>l(u,p=>p.deserved)).join("")}}function co(e,n){let t=[];return e.forEach((r,i)=>{n(r)||((i===0||n(
e[i-1]))&&t.push([]),t.at(-1).push(r))}),t}function rr(e){return Math.round(e*100)/100}function or(e,n){let t=n.flat(),r=c=>{let[l,f]=[Math.min(...c),Math.max(...c)].
map(u=>re(e,u));return l===f?"unchanged":`${l} to ${f}`},i=t.at(-1);if(!i)return`${ne(e)}: nothing is known`;let o=t.map(c=>c.deserved).filter(c=>c!==void 0),a=`${ne(
e)}: ${re(e,i.used)} used (${r(t.map(c=>c.used))})`;return i.deserved===void 0?a:`${a}; ${re(e,i.deserved)} deserved (${r(o)})`}var ln=class{constructor(n){this.api=n;this.gangs=new ee(n,"gangs",!0),this.queues=new ee(n,"queues",!1,t=>this.queueHistory.take(t,Date.now())),this.nodes=new ee(
n,"nodes"),this.podShapes=new ee(n,"podshapes"),this.instances=new ee(n,"instances"),this.decisions=new ee(n,"decisions")}api;gangs;queues;queueHistory=new cn;nodes;podShapes;instances;decisions;stop(){
for(let n of[this.gangs,this.queues,this.nodes,this.podShapes,this.instances,this.decisions])n.stop()}},Bn=Et(void 0);function j(){let e=Ft(Bn);if(!e)throw new Error(
"there is no session");return e}function O(e){let[,n]=$n((t,r)=>t+1,0);return q(()=>e.subscribe(()=>n()),[e]),e.snapshot}function ie(e=1e3){let[n,t]=N(Date.now());
return q(()=>{let r=setInterval(()=>t(Date.now()),e);return()=>clearInterval(r)},[e]),n}function sr(){let[e,n]=N(()=>Ae(location.hash));return q(()=>{let t=()=>n(
Ae(location.hash));return addEventListener("hashchange",t),()=>removeEventListener("hashchange",t)},[]),e}function F(e,n){let{page:t,parts:r,query:i}=Ae(location.
hash);n?i.set(e,n):i.delete(e);let o=i.toString();history.replaceState(null,"",`${V(t,...r)}${o?`?${o}`:""}`),dispatchEvent(new HashChangeEvent("hashchange"))}var Un=[["d",86400],["h",3600],["m",60],["s",1]];function Be(e){let n=Math.max(0,Math.floor(e/1e3));if(n<1)return"0s";let t=Un.findIndex(([,l])=>n>=l),[r,i]=Un[t],
o=Math.floor(n/i),a=Un[t+1];if(!a||o>=10||a[0]==="s")return`${o}${r}`;let c=Math.floor((n-o*i)/a[1]);return c?`${o}${r}${c}${a[0]}`:`${o}${r}`}function le(e,n){
let t=Date.parse(e??"");return Number.isNaN(t)?"":Be(n-t)}function un(e){let n=Date.parse(e??"");return Number.isNaN(n)?"":new Date(n).toISOString().replace("T",
" ").replace(/\.\d+Z$/,"Z")}function Q({children:e,of:n}){let t=n.find(c=>c.freshness==="failed"),r=[...new Set(n.filter(c=>c.message&&c.freshness!=="failed").map(c=>c.message))],i=n.some(
c=>c.freshness==="loading"),[o,a]=t?["not current","bad"]:i?["loading","idle"]:["live","good"];return s(T,{children:[s("h1",{children:[e," ",s("span",{class:`ba\
dge ${a}`,role:"status",children:o})]}),t&&s("p",{class:"error",role:"alert",children:t.message}),r.map(c=>s("p",{class:"warning",children:c},c))]})}function fn({
of:e}){return e.freshness==="forbidden"?s(W,{children:e.message}):e.freshness==="failed"?s("p",{class:"error",children:e.message}):null}function ar({value:e,onSearch:n}){
let t=ce(null);return q(()=>{let r=i=>{let o=i.target;i.key!=="/"||i.ctrlKey||i.metaKey||/^(INPUT|TEXTAREA|SELECT)$/.test(o.tagName)||(i.preventDefault(),t.current?.
focus())};return addEventListener("keydown",r),()=>removeEventListener("keydown",r)},[]),s("input",{ref:t,type:"search",class:"search",value:e,"aria-label":"Sea\
rch gangs by name, owner, namespace, queue or reason",placeholder:"Search gangs ( / )",onInput:r=>n(r.currentTarget.value)})}var Gn=["auto","light","dark"];function cr(){
let[e,n]=N(()=>localStorage.getItem("tutti.theme")??"auto");q(()=>{document.documentElement.dataset.theme=e,localStorage.setItem("tutti.theme",e)},[e]);let t=Gn[(Gn.
findIndex(r=>r===e)+1)%Gn.length];return s("button",{type:"button",onClick:()=>n(t),title:`Change to ${t}`,children:["Theme: ",e]})}var lo={Running:"good",Starting:"\
busy",Unknown:"bad",Inqueue:"wait",Pending:"idle",Completed:"done"};function ke({phase:e}){return s("span",{class:`badge ${lo[e]??"idle"}`,children:e})}function oe({
place:e}){return s("a",{href:De(e),children:e})}function ge({named:e}){let n=e.names??[],t=e.count-n.length;return s("ul",{class:"inline",children:[n.map(r=>s("\
li",{children:s(oe,{place:r})},r)),t>0&&s("li",{children:n.length?`${t} more`:`${t} ${t===1?"gang":"gangs"}`})]})}function dn({label:e,whole:n,parts:t,marks:r=[]}){
let i=o=>`${n>0?Math.min(100,100*o/n):0}%`;return s("div",{class:"bar",role:"img","aria-label":e,title:e,children:[t.map(o=>s("span",{class:o.kind,style:{width:i(
o.value)}},o.kind)),r.map(o=>s("i",{class:o.kind,style:{left:i(o.value)}},o.kind))]})}function he({resource:e,value:n}){return s(T,{children:n===void 0?"\u2013":
re(e,n)})}function W({children:e}){return s("p",{class:"empty",children:e})}function z({label:e,children:n}){return s("div",{class:"scroll",role:"region","aria-\
label":e,tabIndex:0,children:n})}function Se({label:e,value:n,options:t,onChoice:r}){return s("label",{children:[e," ",s("select",{value:n,onChange:i=>r(i.currentTarget.
value),children:t.map(i=>s("option",{value:i,children:i},i))})]})}var pn=200;function lr({route:e}){let n=j(),[t="",r=""]=e.parts,i=O(n.gangs),o=x(()=>new ee(n.api,`namespaces/${encodeURIComponent(t)}/decisions`),[n,t]);q(()=>()=>o.
stop(),[o]);let a=O(o),c=Yt(i.items,t,r),[l]=c;return s(T,{children:[s(Q,{of:[i,a],children:[s("small",{children:[t,"/"]}),c.length===1&&l?l.metadata.name:r]}),
!l&&i.freshness==="live"&&s(W,{children:"There is no such gang, or you may not see it. It may have ended."}),l&&c.length===1&&s(uo,{gang:l,decisions:a.items}),c.
length>1&&s(ge,{named:{count:c.length,names:c.map(I)}})]})}function uo({gang:e,decisions:n}){let t=ie(),{status:r,metadata:i}=e,{members:o}=r;return s(T,{children:[
r.pending&&s("p",{class:"why",children:r.pending.message}),s("dl",{class:"facts",children:[s("dt",{children:"Phase"}),s("dd",{children:s(ke,{phase:r.phase})}),s(
"dt",{children:"Members"}),s("dd",{children:[o.running," running, ",o.pending," pending",o.succeeded?`, ${o.succeeded} succeeded`:"",o.failed?`, ${o.failed} fai\
led`:""," of ",o.total,"; at least ",r.minMember]}),s("dt",{children:"Queue"}),s("dd",{children:s("a",{href:`${V("queues")}?${new URLSearchParams({queue:r.queue})}`,
children:r.queue})}),s("dt",{children:"Age"}),s("dd",{children:le(i.creationTimestamp,t)}),s(Ue,{name:"Owner",value:r.owner}),s(Ue,{name:"API",value:r.dialect}),
s(Ue,{name:"Domain",value:r.domain}),s(Ue,{name:"Node pool",value:r.nodePool}),s(Ue,{name:"Attempt",value:r.attempt?String(r.attempt):""}),s(fo,{id:r.traceId,address:Jt(
r.traceUrl)})]}),r.pending&&s(po,{pending:r.pending,now:t}),s(mo,{gang:e,decisions:n}),s(go,{gang:e,decisions:n})]})}function Ue({name:e,value:n}){return n?s(T,
{children:[s("dt",{children:e}),s("dd",{children:n})]}):null}function fo({id:e,address:n}){return e?s(T,{children:[s("dt",{children:"Trace"}),s("dd",{children:n?
s("a",{href:n,rel:"noreferrer",children:[e," in Jaeger"]}):e})]}):null}function po({pending:e,now:n}){return s("section",{children:[s("h2",{children:"What it wa\
its for"}),s("dl",{class:"facts",children:[s("dt",{children:"Reason"}),s("dd",{children:e.reason}),e.since&&s(T,{children:[s("dt",{children:"Since"}),s("dd",{children:le(
e.since,n)})]}),e.ahead&&s(T,{children:[s("dt",{children:"Ahead of it"}),s("dd",{children:s(ge,{named:e.ahead})})]}),e.holders&&s(T,{children:[s("dt",{children:"\
Hold what it lacks"}),s("dd",{children:s(ge,{named:e.holders})})]}),e.quota&&s(T,{children:[s("dt",{children:"Quota"}),s("dd",{children:s(ur,{all:e.quota})})]})]})]})}
function ur({all:e}){return s("ul",{class:"inline",children:e.map((n,t)=>s("li",{children:[n.nodes?`${n.nodes} \xD7 `:"",n.reason,n.missing?` (${n.missing} ${n.
resource} missing)`:""]},t))})}function mo({gang:e,decisions:n}){let t=new Map((e.status.pending?.roles??[]).map(c=>[c.name,c])),r=new Map((e.status.roles??[]).
map(c=>[c.name,c])),i=[...new Set([...r.keys(),...t.keys()])].sort(),o=x(()=>Xt(e,n),[e,n]),a=e.status.placement??[];return s("section",{children:[s("h2",{children:"\
Members"}),!i.length&&s(W,{children:"It has no pods yet."}),i.length>0&&s(z,{label:"Members by role",children:s("table",{children:[s("thead",{children:s("tr",{children:[
s("th",{scope:"col",children:"Role"}),s("th",{scope:"col",class:"number",children:"Members"}),s("th",{scope:"col",class:"number",children:"Placed"}),s("th",{scope:"\
col",class:"number",children:"Running"}),s("th",{scope:"col",class:"number",children:"Would fit now"}),s("th",{scope:"col",children:"Nodes refuse because"})]})}),
s("tbody",{children:i.map(c=>{let[l,f]=[r.get(c),t.get(c)];return s("tr",{children:[s("th",{scope:"row",children:c||"(none)"}),s("td",{class:"number",children:l?.
members??"\u2013"}),s("td",{class:"number",children:l?.placed??"\u2013"}),s("td",{class:"number",children:l?.running??"\u2013"}),s("td",{class:"number",children:f?
`${f.fitting} of ${f.wanted}`:"\u2013"}),s("td",{children:f?.refusals&&s(ur,{all:f.refusals})})]},c)})})]})}),a.length>0&&s("h3",{children:["On ",a.length," ",a.
length===1?"node":"nodes"]}),o.length>0?s(z,{label:"Members and their nodes",children:s("table",{children:[s("thead",{children:s("tr",{children:[s("th",{scope:"\
col",children:"Pod"}),s("th",{scope:"col",children:"Node"})]})}),s("tbody",{children:o.slice(0,pn).map(c=>s("tr",{children:[s("th",{scope:"row",children:c.name}),
s("td",{children:c.node})]},c.name))})]})}):s("ul",{class:"inline",children:a.slice(0,pn).map(c=>s("li",{children:[c.node," (",c.members,")"]},c.node))}),Math.max(
o.length,a.length)>pn&&s("p",{children:["The first ",pn," are shown."]})]})}function go({gang:e,decisions:n}){let t=x(()=>Vt(e,n),[e,n]),r=Date.parse(t[0]?.time??
"");return s("section",{children:[s("h2",{children:"History"}),s("ol",{class:"history",children:t.map((i,o)=>s("li",{children:[s("time",{dateTime:i.time,children:un(
i.time)})," ",s("small",{children:["+",((Date.parse(i.time)-r)/1e3).toFixed(1)," s"]})," ",s("strong",{children:i.title})," ",i.details]},o))})]})}var Ge=["Running","Starting","Unknown","Inqueue","Pending","Completed"];function fr(e){let n=new Map;for(let{status:t}of e)for(let r of t.resources??[]){let i=n.
get(r.resource)??{resource:r.resource,total:0,requested:0,unusable:0};i.total+=K(r.allocatable),i.requested+=K(r.requested),(!t.ready||!t.schedulable)&&(i.unusable+=
Math.max(0,K(r.free))),n.set(r.resource,i)}return n}function mn(e){let n=new Map(Ge.map(t=>[t,0]));for(let{status:t}of e)n.set(t.phase,(n.get(t.phase)??0)+1);return n}
function dr(e){let n=new Map;for(let t of e){let r=t.status.pending?.reason;if(!r)continue;let i=t.status.members.pending,o=n.get(r)??{reason:r,gangs:0,members:0,
largest:t};o.gangs+=1,o.members+=i,i>o.largest.status.members.pending&&(o.largest=t),n.set(r,o)}return[...n.values()].sort((t,r)=>r.members-t.members||(t.reason<
r.reason?-1:1))}function pr(e,n){let t=new Map;for(let r of e)for(let i of r.status.pending?.holders?.names??[]){let o=t.get(i)??{gang:i,gangs:0,members:0};o.gangs+=
1,o.members+=r.status.members.pending,t.set(i,o)}return[...t.values()].sort((r,i)=>i.members-r.members||(r.gang<i.gang?-1:1)).slice(0,n)}function mr(e){let n=new Set(
e.map(r=>r.metadata.name)),t=new Map;for(let{status:r}of e)if(!n.has(r.parent??""))for(let i of r.resources??[]){let o=t.get(i.resource)??{resource:i.resource,promised:0,
reserved:0};o.promised+=K(i.promised),o.reserved+=K(i.reserved),t.set(i.resource,o)}return t}function gr(e,n){let t=n.toLowerCase().split(/\s+/).filter(Boolean);
return t.length?e.filter(r=>{let{status:i}=r,a=[I(r),i.owner,i.queue,i.phase,i.dialect,i.pending?.reason].join(" ").toLowerCase();return t.every(c=>a.includes(c))}):
[...e]}var hr=100;function _r({route:e}){let{gangs:n}=j(),t=O(n),r=ie(),[i,o]=N(hr),a=e.query.get("search")??"",c=e.query.get("phase")??"",l=e.query.get("queue")??"",f=x(
()=>gr(t.items,a).filter(m=>!l||m.status.queue===l),[t.items,a,l]),u=x(()=>mn(f),[f]),p=x(()=>f.filter(m=>!c||m.status.phase===c).sort(ho),[f,c]);return s(T,{children:[
s(Q,{of:[t],children:"Gangs"}),s("div",{class:"filters",role:"group","aria-label":"Phase",children:[s("button",{type:"button","aria-pressed":!c,onClick:()=>F("p\
hase",""),children:["All ",f.length]}),Ge.map(m=>s("button",{type:"button","aria-pressed":c===m,onClick:()=>F("phase",c===m?"":m),children:[m," ",u.get(m)]},m)),
l&&s("button",{type:"button",onClick:()=>F("queue",""),children:["Queue: ",l," \u2715"]}),a&&s("button",{type:"button",onClick:()=>F("search",""),children:["Sea\
rch: ",a," \u2715"]})]}),t.freshness==="live"&&!p.length&&s(W,{children:"No gang that you may see is like this."}),p.length>0&&s(z,{label:"Gangs",children:s("ta\
ble",{class:"list",children:[s("thead",{children:s("tr",{children:[s("th",{scope:"col",children:"Gang"}),s("th",{scope:"col",children:"Phase"}),s("th",{scope:"c\
ol",class:"number",children:"Running"}),s("th",{scope:"col",class:"number",children:"Minimum"}),s("th",{scope:"col",children:"Queue"}),s("th",{scope:"col",children:"\
Age"}),s("th",{scope:"col",children:"Why it waits"})]})}),s("tbody",{children:p.slice(0,i).map(m=>s(_o,{gang:m,now:r},I(m)))})]})}),p.length>i&&s("p",{children:s(
"button",{type:"button",onClick:()=>o(i+4*hr),children:["Show more: ",p.length-i," are left"]})})]})}function ho(e,n){let t=r=>r.status.pending?0:1;return t(e)-
t(n)||(I(e)<I(n)?-1:1)}function _o({gang:e,now:n}){let{status:t,metadata:r}=e;return s("tr",{children:[s("th",{scope:"row",children:s(oe,{place:I(e)})}),s("td",
{children:s(ke,{phase:t.phase})}),s("td",{class:"number",children:[t.members.running,"/",t.members.total]}),s("td",{class:"number extra",children:t.minMember}),
s("td",{children:t.queue}),s("td",{children:le(r.creationTimestamp,n)}),s("td",{class:"sentence",children:t.pending?.message})]})}function qe(e){let n=2166136261;for(let r=0;r<e.length;r++)n=Math.imul(n^e.charCodeAt(r),16777619);n=Math.imul(n^n>>>15,2246822519);let t=(n^n>>>13)>>>0;return`\
hsl(${t%360} ${50+(t>>>9)%30}% ${40+(t>>>17)%16}%)`}function vr(e){let n=new Set;for(let t of e)for(let{resource:r}of t.status.resources??[])n.add(r);return me(n)}function Sr(e){let n=new Set;for(let t of e)for(let r of Object.
keys(t.status.topology??{}))n.add(r);return[...n].sort()}function wr(e,n,t,r,i){let o=new Map;for(let c of n)for(let{node:l,members:f}of c.status.placement??[]){
let u=o.get(l);u?u.push({gang:c,members:f}):o.set(l,[{gang:c,members:f}])}let a=new Map;for(let c of[...e].sort((l,f)=>l.metadata.name<f.metadata.name?-1:1)){let l=i?
c.status.topology?.[i]??"":"",f=a.get(l)??{name:l,tiles:[]};f.tiles.push(bo(c,o.get(c.metadata.name)??[],t,r)),a.set(l,f)}return[...a.values()].sort((c,l)=>c.name<
l.name?-1:1)}function bo(e,n,t,r){let{status:i}=e,o=(i.resources??[]).find(p=>p.resource===t),a=K(o?.allocatable),c=a>0?Math.min(1,K(o?.requested)/a):0,l=n.reduce(
(p,m)=>p+m.members,0),f=l?Math.max(0,i.members-l):i.pods,u=new Map;for(let p of n){let m=r==="gang"?I(p.gang):p.gang.status.queue;u.set(m,(u.get(m)??0)+p.members)}
return f&&u.set("",f),{node:e,usable:i.ready&&i.schedulable,segments:[...u].map(([p,m])=>({name:p,part:c*m/(l+f)})),gangs:n.map(p=>({gang:I(p.gang),members:p.members}))}}
var Kn=16,br=8,yo=44,qn=5;function Tr(e,n,t){let r=e.length>1;for(let i=yo;i>qn;i--){let o=yr(e,n,i,r);if(o&&o.height<=t)return o}return yr(e,Math.max(n,qn),qn,
r)}function yr(e,n,t,r){let i=Math.floor(n/t);if(i<1)return;let o=[],[a,c,l]=[0,0,0];for(let f of e){let u=Math.max(1,Math.min(i,r?Math.ceil(Math.sqrt(f*2)):f)),
p={columns:u,width:u*t,height:Math.ceil(f/u)*t+(r?Kn:0)};a>0&&a+p.width>n&&(c+=l+br,a=l=0),o.push({x:a,y:c,columns:u,width:p.width}),a+=p.width+br,l=Math.max(l,
p.height)}return{side:t,boxes:o,height:c+l}}function Ar({route:e}){let n=j(),t=O(n.nodes),r=O(n.gangs),i=x(()=>vr(t.items),[t.items]),o=x(()=>Sr(t.items),[t.items]),a=e.query.get("resource")??i[0]??"",c=e.
query.get("by")==="queue"?"queue":"gang",l=e.query.get("group")??o[0]??"",f=x(()=>wr(t.items,r.items,a,c,l==="none"?"":l),[t.items,r.items,a,c,l]),[u,p,m]=vo(),
d=x(()=>Tr(f.map(S=>S.tiles.length),p,m),[f,p,m]),g=x(()=>f.flatMap(S=>S.tiles),[f]),[b,h]=N(""),v=g.find(S=>S.node.metadata.name===b),w=S=>{let y=g.findIndex(se=>se.
node.metadata.name===b),P=d.boxes[0]?.columns??1,B={ArrowRight:1,ArrowLeft:-1,ArrowDown:P,ArrowUp:-P}[S.key],J=S.key==="Home"?0:S.key==="End"?g.length-1:B&&y+B;
J===void 0||!g[J]||(S.preventDefault(),h(g[J].node.metadata.name),u.current?.querySelectorAll("button")[J]?.focus())};return s(T,{children:[s(Q,{of:[t,r],children:"\
Cluster map"}),s("div",{class:"filters",children:[s(Se,{label:"Resource",value:a,options:i,onChoice:S=>F("resource",S)}),s(Se,{label:"Colour by",value:c,options:[
"gang","queue"],onChoice:S=>F("by",S)}),o.length>0&&s(Se,{label:"Group by",value:l,options:[...o,"none"],onChoice:S=>F("group",S)})]}),t.freshness==="live"&&!g.
length&&s(W,{children:"There are no nodes."}),s("div",{class:"map",ref:u,role:"group","aria-label":`${g.length} nodes; arrow keys move`,onKeyDown:w,children:s("\
div",{style:{height:`${d.height}px`,position:"relative"},children:f.map((S,y)=>{let P=d.boxes[y];return s("div",{class:"box",style:{left:`${P.x}px`,top:`${P.y}p\
x`,width:`${P.width}px`},children:[f.length>1&&s("div",{class:"title",style:{height:`${Kn}px`},title:S.name,children:S.name||"(no label)"}),S.tiles.map(B=>s(So,
{tile:B,side:d.side,resource:a,pressed:B===v,focusable:v?B===v:B===g[0],onChoose:h},B.node.metadata.name))]},S.name)})})}),s("div",{"aria-live":"polite",children:v?
s(To,{tile:v}):s("p",{class:"empty",children:"Choose a node to see what is on it."})})]})}function vo(){let e=ce(null),[n,t]=N([0,0]);return q(()=>{let r=new ResizeObserver(
([i])=>{i&&t([Math.floor(i.contentRect.width),Math.floor(i.contentRect.height)])});return r.observe(e.current),()=>r.disconnect()},[]),[e,...n]}function So({tile:e,
side:n,resource:t,pressed:r,focusable:i,onChoose:o}){let{name:a}=e.node.metadata,c=e.segments.reduce((f,u)=>f+u.part,0),l=`${a}: ${Math.round(c*100)} % of ${ne(
t)} requested, ${e.gangs.length} gangs`+(e.usable?"":", takes no new pods");return s("button",{type:"button",class:e.usable?"tile":"tile unusable","aria-label":l,
"aria-pressed":r,title:l,tabIndex:i?0:-1,onClick:()=>o(a),style:{width:`${n-1}px`,height:`${n-1}px`,backgroundImage:wo(e)}})}function wo(e){let n=0,t=e.segments.
map(({name:r,part:i})=>{let o=n;return n+=i*100,`${r?qe(r):"var(--wanted)"} ${o.toFixed(1)}% ${n.toFixed(1)}%`});return t.length?`linear-gradient(to top, ${t.join(
", ")}, transparent ${n.toFixed(1)}%)`:"none"}function To({tile:e}){let{metadata:n,status:t}=e.node;return s("section",{children:[s("h2",{children:n.name}),s("d\
l",{class:"facts",children:[(t.resources??[]).map(r=>s(T,{children:[s("dt",{title:r.resource,children:ne(r.resource)}),s("dd",{children:[r.requested," of ",r.allocatable,
" requested, ",r.free," free"]})]})),!e.usable&&s(T,{children:[s("dt",{children:"State"}),s("dd",{children:t.ready?"cordoned":"not ready"})]}),t.taints&&s(T,{children:[
s("dt",{children:"Taints"}),s("dd",{children:t.taints.join(", ")})]}),Object.entries(t.topology??{}).map(([r,i])=>s(T,{children:[s("dt",{children:r}),s("dd",{children:i})]})),
s("dt",{children:"Gangs"}),s("dd",{children:[s("ul",{class:"inline",children:e.gangs.map(r=>s("li",{children:[s("span",{class:"swatch",style:{background:qe(r.gang)}}),
" ",s(oe,{place:r.gang})," (",r.members,")"]},r.gang))}),!e.gangs.length&&"none that you may see"]})]})]})}var jn=10;function kr(){let e=j(),n=O(e.gangs),t=O(e.nodes),r=O(e.queues),i=O(e.podShapes),o=O(e.instances);return s(T,{children:[s(Q,{of:t.freshness==="forbidd\
en"?[n,r]:[n,t,r],children:"Overview"}),s("div",{class:"panels",children:[s("div",{children:[s(ko,{gangs:n}),s(Ao,{nodes:t,queues:r}),s(Co,{shapes:i})]}),s("div",
{children:[s(Eo,{gangs:n}),s(xo,{gangs:n}),s(No,{instances:o})]})]})]})}function Ao({nodes:e,queues:n}){let t=x(()=>fr(e.items),[e.items]),r=x(()=>mr(n.items),[
n.items]);return s("section",{children:[s("h2",{children:"Capacity"}),s(fn,{of:e}),me(t.keys()).map(i=>{let{total:o,requested:a,unusable:c}=t.get(i),{promised:l,
reserved:f}=r.get(i)??{promised:0,reserved:0},u=m=>re(i,m),p=[`${u(a)} of ${u(o)} requested`,c?`${u(c)} on nodes that take no pods`:"",l?`${u(l)} promised to ad\
mitted gangs`:"",f?`${u(f)} reserved for lost members`:""].filter(Boolean).join("; ");return s("div",{class:"measure",children:[s("div",{title:i,children:[ne(i),
" ",s("strong",{children:[o?Math.round(100*a/o):0," %"]})]}),s(dn,{label:`${i}: ${p}`,whole:o,parts:[{kind:"used",value:a,title:"requested"},{kind:"kept",value:l+
f,title:"kept"},{kind:"unusable",value:c,title:"unusable"}]}),s("small",{children:p})]},i)})]})}function ko({gangs:e}){let n=x(()=>mn(e.items),[e.items]);return s(
"section",{children:[s("h2",{children:"Gangs"}),s("ul",{class:"counts",children:Ge.map(t=>s("li",{children:s("a",{href:`${V("gangs")}?${new URLSearchParams({phase:t})}`,
children:[s("strong",{children:n.get(t)})," ",s(ke,{phase:t})]})},t))})]})}function Eo({gangs:e}){let n=x(()=>dr(e.items),[e.items]);return s("section",{children:[
s("h2",{children:"Why gangs wait"}),e.freshness==="live"&&!n.length&&s(W,{children:"No gang waits."}),n.length>0&&s(z,{label:"Why gangs wait",children:s("table",
{children:[s("thead",{children:s("tr",{children:[s("th",{scope:"col",children:"Reason"}),s("th",{scope:"col",class:"number",children:"Gangs"}),s("th",{scope:"co\
l",class:"number",children:"Members"}),s("th",{scope:"col",children:"Largest"})]})}),s("tbody",{children:n.slice(0,jn).map(t=>s("tr",{children:[s("th",{scope:"r\
ow",children:s("a",{href:`${V("gangs")}?${new URLSearchParams({search:t.reason})}`,children:t.reason})}),s("td",{class:"number",children:t.gangs}),s("td",{class:"\
number",children:t.members}),s("td",{children:s(oe,{place:I(t.largest)})})]},t.reason))})]})})]})}function xo({gangs:e}){let n=x(()=>pr(e.items,jn),[e.items]);return n.
length?s("section",{children:[s("h2",{children:"Gangs that hold what others lack"}),s(z,{label:"Gangs that hold what others lack",children:s("table",{children:[
s("thead",{children:s("tr",{children:[s("th",{scope:"col",children:"Gang"}),s("th",{scope:"col",class:"number",children:"Waiting gangs"}),s("th",{scope:"col",class:"\
number",children:"Their members"})]})}),s("tbody",{children:n.map(t=>s("tr",{children:[s("th",{scope:"row",children:s(oe,{place:t.gang})}),s("td",{class:"number",
children:t.gangs}),s("td",{class:"number",children:t.members})]},t.gang))})]})})]}):null}function Co({shapes:e}){return s("section",{children:[s("h2",{children:"\
Largest gangs that fit now"}),s(fn,{of:e}),e.freshness==="live"&&e.items.length===0&&s(W,{children:"There are no gangs, so there are no shapes of pods to count."}),
e.items.length>0&&s(z,{label:"Largest gangs that fit now",children:s("table",{children:[s("thead",{children:s("tr",{children:[s("th",{scope:"col",children:"Pods\
 that request"}),s("th",{scope:"col",class:"number",children:"Anywhere"}),s("th",{scope:"col",class:"number",children:"One domain"}),s("th",{scope:"col",class:"\
number",children:"One node"}),s("th",{scope:"col",class:"number",children:"Unfragmented"})]})}),s("tbody",{children:e.items.slice(0,jn).map(({metadata:n,status:t})=>s(
"tr",{children:[s("th",{scope:"row",children:[me(Object.keys(t.requests)).map(r=>`${t.requests[r]} ${ne(r)}`).join(", "),Object.entries(t.nodeSelector??{}).map(
([r,i])=>s("small",{children:[" ",r,"=",i]},r))]}),s("td",{class:"number",children:t.fits}),s("td",{class:"number",children:t.tiers?.length?Math.max(...t.tiers.
map(r=>r.pods)):"\u2013"}),s("td",{class:"number",children:t.fitsOnNode}),s("td",{class:"number",children:s(he,{resource:"pods",value:t.unfragmented})})]},n.name))})]})})]})}
function No({instances:e}){let n=ie();return s("section",{children:[s("h2",{children:"Services"}),s(fn,{of:e}),s("ul",{class:"services",children:e.items.map(({metadata:t,
status:r})=>s("li",{children:[s("span",{class:`badge ${r.ready?"good":"bad"}`,children:r.ready?"ready":"not ready"})," ",r.service,!r.active&&" (standby)"," ",s(
"small",{children:[r.version,", ",le(r.started,n)]}),(r.notReady??[]).map(i=>s("small",{children:[" ",i]},i))]},t.name))})]})}var Io=50;function Cr({route:e}){let{queues:n,gangs:t}=j(),r=O(n),i=O(t),o=x(()=>er(r.items),[r.items]),a=x(()=>Lo(i.items),[i.items]),c=e.query.get("queue")??"";
return s(T,{children:[s(Q,{of:[r,i],children:"Queues"}),r.freshness==="live"&&!o.length&&s(W,{children:"There are no queues."}),o.length>0&&s(z,{label:"Queues",
children:s("table",{class:"tree",children:[s("thead",{children:s("tr",{children:[s("th",{scope:"col",children:"Queue"}),s("th",{scope:"col",class:"number",children:"\
Running"}),s("th",{scope:"col",class:"number",children:"Waiting"}),s("th",{scope:"col",children:"Resource"}),s("th",{scope:"col",class:"wide",children:"Share"}),
s("th",{scope:"col",class:"number",children:"Used"}),s("th",{scope:"col",class:"number",children:"Deserved"}),s("th",{scope:"col",class:"number",children:"Borro\
wed"}),s("th",{scope:"col",class:"number",children:"Limit"}),s("th",{scope:"col",class:"number",children:"Waited for"})]})}),o.map(({queue:l,depth:f})=>s(Oo,{queue:l,
depth:f,open:c===l.metadata.name,waiting:a.get(l.metadata.name)??[]},l.metadata.name))]})}),s(Fo,{})]})}function Lo(e){let n=new Map;for(let t of e){if(!t.status.
pending)continue;let r=n.get(t.status.queue);r?r.push(t):n.set(t.status.queue,[t])}for(let t of n.values())t.sort((r,i)=>Wn(r)<Wn(i)?-1:1);return n}function Wn(e){
return e.status.pending?.since??e.metadata.creationTimestamp??""}function Oo({queue:e,depth:n,open:t,waiting:r}){let{name:i}=e.metadata,{status:o}=e,a=an(e),l=me(
a.map(p=>p.resource)).map(p=>a.find(m=>m.resource===p)),f=l.length?l:[void 0],u=[o.exists?"":"no such queue",o.state&&o.state!=="Open"?o.state:"",o.strict?"stri\
ct order":"",o.reclaimable?"":"not reclaimable",`weight ${o.weight}`].filter(Boolean).join(", ");return s("tbody",{children:[f.map((p,m)=>s("tr",{children:[m===
0&&s(T,{children:[s("th",{scope:"rowgroup",rowSpan:f.length,children:s("span",{class:"indent",style:{paddingLeft:`${Math.min(n,8)*1.25}rem`},children:[s("button",
{type:"button",class:"disclosure","aria-expanded":t,onClick:()=>F("queue",t?"":i),children:i}),s("small",{children:u})]})}),s("td",{class:"number",rowSpan:f.length,
children:o.gangs.running}),s("td",{class:"number",rowSpan:f.length,children:o.gangs.waiting+o.gangs.notAdmitted})]}),p?s(Po,{share:p}):s("td",{colSpan:7})]},p?.
resource??"")),t&&s("tr",{children:s("td",{colSpan:10,class:"details",children:s(Ro,{queue:e,waiting:r})})})]})}function Po({share:e}){let{resource:n,used:t,wanted:r,
promised:i,reserved:o,deserved:a,limit:c,borrowed:l}=e,f=t-l,u=m=>re(n,m),p=`${n}: uses ${u(t)}${a===void 0?"":`, deserves ${u(a)}`}${c===void 0?"":`, at most ${u(
c)}`}, waits for ${u(r)}`;return s(T,{children:[s("td",{title:n,children:ne(n)}),s("td",{class:"wide",children:s(dn,{label:p,whole:Math.max(c??0,a??0,t+i+o+r),parts:[
{kind:"used",value:f,title:"used"},{kind:"borrowed",value:l,title:"borrowed"},{kind:"kept",value:i+o,title:"kept"},{kind:"wanted",value:r,title:"waited for"}],marks:a===
void 0?[]:[{kind:"deserved",value:a,title:"deserved"}]})}),s("td",{class:"number",children:s(he,{resource:n,value:t})}),s("td",{class:"number",children:s(he,{resource:n,
value:a})}),s("td",{class:"number",children:s(he,{resource:n,value:l||void 0})}),s("td",{class:"number",children:s(he,{resource:n,value:c})}),s("td",{class:"num\
ber",children:s(he,{resource:n,value:r||void 0})})]})}function Ro({queue:e,waiting:n}){let t=ie(),{name:r}=e.metadata;return s(T,{children:[e.status.message&&s(
"p",{children:e.status.message}),e.status.holders&&s("p",{children:["Held mostly by: ",s(ge,{named:e.status.holders})]}),s($o,{queue:e,now:t}),!n.length&&s("p",
{children:"No gang that you may see waits in this queue itself."}),n.length>0&&s("table",{children:[s("thead",{children:s("tr",{children:[s("th",{scope:"col",children:"\
Waiting gang"}),s("th",{scope:"col",class:"number",children:"Members"}),s("th",{scope:"col",children:"Since"}),s("th",{scope:"col",children:"Why"})]})}),s("tbod\
y",{children:n.slice(0,Io).map(i=>s("tr",{children:[s("td",{children:s(oe,{place:I(i)})}),s("td",{class:"number",children:i.status.members.pending}),s("td",{children:le(
Wn(i),t)}),s("td",{class:"sentence",children:i.status.pending?.message})]},I(i)))})]}),s("p",{children:s("a",{href:`${V("gangs")}?${new URLSearchParams({queue:r})}`,
children:["All gangs of ",r]})})]})}function $o({queue:e,now:n}){let{queueHistory:t}=j(),{name:r}=e.metadata,i=t.since,o=me((e.status.resources??[]).map(a=>a.resource));
return i===void 0||!o.length?null:s("section",{children:[s("h2",{children:["Since this page was opened ",s("small",{children:[un(new Date(i).toISOString()),", ",
Be(n-i)," ago"]})]}),s("ul",{class:"sparklines",children:o.map(a=>s(Mo,{resource:a,lines:t.lines(r,a),from:i,to:n},a))}),s("p",{class:"empty",children:"Used, an\
d as a dashed line deserved, while this page or the overview was shown. Nothing is known of gaps."})]})}var[Er,xr]=[240,32];function Mo({resource:e,lines:n,from:t,
to:r}){let i=ir(n,t,Math.max(r,n.at(-1)?.at(-1)?.at??r),Er,xr),o=or(e,n);return s("li",{title:e,children:[s("svg",{role:"img","aria-label":o,viewBox:`0 0 ${Er} ${xr}`,
preserveAspectRatio:"none",children:[s("path",{class:"area",d:i.area}),s("path",{class:"line",d:i.used}),s("path",{class:"line share",d:i.deserved})]}),s("span",
{"aria-hidden":"true",children:o})]})}function Fo(){return s("ul",{class:"legend","aria-label":"Colours of the shares",children:[s("li",{children:[s("span",{class:"\
used"})," used"]}),s("li",{children:[s("span",{class:"borrowed"})," used beyond its deserved share"]}),s("li",{children:[s("span",{class:"kept"})," kept for adm\
itted gangs and lost members"]}),s("li",{children:[s("span",{class:"wanted"})," waited for"]}),s("li",{children:[s("span",{class:"mark"})," deserved share"]})]})}var Do=new Set(["Starting","Running","Unknown"]);function Nr(e,n){let t=new Map;for(let{status:o}of e)if(o.action==="Evict")for(let a of o.pods??[])t.set(a.uid,
Date.parse(o.time));let r=new Map;for(let o of n)Do.has(o.status.phase)&&r.set(I(o),new Set((o.status.placement??[]).map(a=>a.node)));let i=[];for(let{status:o}of e){
if(o.action!=="Bind")continue;let a=Date.parse(o.time),c=new Map;for(let l of o.pods??[])c.set(l.node??"",[...c.get(l.node??"")??[],l.uid]);for(let[l,f]of c){let u=f.
map(m=>t.get(m)),p={gang:o.gang,node:l,start:a,pods:f.length};u.every(m=>m!==void 0&&m>=a)?i.push({...p,end:Math.max(...u),ended:"known"}):r.get(o.gang)?.has(l)?
i.push({...p,end:1/0,ended:"now"}):i.push({...p,end:a,ended:"unknown"})}}return i.sort((o,a)=>o.start-a.start)}function Ir(e,n,t){let r=t.toLowerCase().split(/\s+/).
filter(Boolean),i=new Map;for(let a of e){let c=`${a.gang} ${a.node}`.toLowerCase();if(!r.every(p=>c.includes(p)))continue;let l=n==="gang"?a.gang:a.node,f=i.get(
l)??{name:l,intervals:[]},u=f.intervals.at(-1);n==="gang"&&u&&u.start===a.start&&u.ended===a.ended?f.intervals[f.intervals.length-1]={...u,pods:u.pods+a.pods,end:Math.
max(u.end,a.end),node:""}:f.intervals.push(a),i.set(l,f)}let o=a=>a.intervals.at(-1).start;return[...i.values()].sort((a,c)=>n==="node"?a.name<c.name?-1:1:o(c)-
o(a)||(a.name<c.name?-1:1))}function Lr(e,n,t){if(e.start>=t||e.end<n||t<=n)return;let r=Math.max(0,(e.start-n)/(t-n)),i=Math.min(1,(e.end-n)/(t-n));return{left:r*
100,width:Math.max(0,i-r)*100}}var Bo=[1,5,15,60,300,900,3600,10800,21600,86400,604800];function Or(e,n){let t=(Bo.find(i=>(n-e)/(i*1e3)<=10)??2592e3)*1e3,r=[];
for(let i=Math.ceil(e/t)*t;i<n&&r.length<100;i+=t)r.push(i);return r}var Pr=100,Rr="all",$r={"15m":9e5,"1h":36e5,"6h":216e5,"24h":864e5},Mr=1e4;function Fr({route:e}){let n=j(),t=O(n.decisions),r=O(n.gangs),i=ie(2e3),o=e.query.get(
"by")==="node"?"node":"gang",a=e.query.get("length")??Rr,c=e.query.get("filter")??"",[l,f]=N(Pr),[u,p]=N(),m=x(()=>Nr(t.items,r.items),[t.items,r.items]),d=x(()=>Ir(
m,o,c),[m,o,c]),[g,b]=u??[i-($r[a]??Math.max(Mr,i-(m[0]?.start??i))),i],h=(y,P=.5)=>{let B=Math.max(Mr,(b-g)*y),J=g+(b-g)*P;p([J-B*P,J+B*(1-P)])},v=y=>p([g+(b-g)*
y,b+(b-g)*y]),w=y=>{let P={"+":()=>h(.5),"-":()=>h(2),ArrowLeft:()=>v(-.25),ArrowRight:()=>v(.25),0:()=>p(void 0)}[y.key];!P||y.ctrlKey||y.metaKey||y.altKey||(y.
preventDefault(),P())},S=y=>{if(!y.ctrlKey)return;y.preventDefault();let P=y.currentTarget.getBoundingClientRect(),B=Math.min(1,Math.max(0,(y.clientX-P.left-P.width*
.2)/(P.width*.8)));h(y.deltaY>0?1.25:.8,B)};return s(T,{children:[s(Q,{of:[t,r],children:"Timeline"}),s("div",{class:"filters",children:[s(Se,{label:"Rows",value:o,
options:["gang","node"],onChoice:y=>F("by",y)}),s(Se,{label:"Length",value:a,options:[...Object.keys($r),Rr],onChoice:y=>{p(void 0),F("length",y)}}),s("label",{
children:["Filter ",s("input",{type:"search",value:c,onInput:y=>F("filter",y.currentTarget.value)})]}),s("span",{role:"group","aria-label":"Zoom",children:[s("b\
utton",{type:"button",onClick:()=>h(.5),"aria-label":"Zoom in",children:"+"})," ",s("button",{type:"button",onClick:()=>h(2),"aria-label":"Zoom out",children:"\u2212"}),
" ",s("button",{type:"button",onClick:()=>v(-.25),"aria-label":"Earlier",children:"\u2190"})," ",s("button",{type:"button",onClick:()=>v(.25),"aria-label":"Late\
r",children:"\u2192"})," ",s("button",{type:"button",onClick:()=>p(void 0),disabled:!u,children:"Now"})]})]}),t.freshness==="live"&&!d.length&&s(W,{children:"No\
 decision that you may see is like this."}),d.length>0&&s("div",{class:"timeline",role:"region","aria-label":"Timeline; + and \u2212 zoom, arrow keys move, 0 resets",
tabIndex:0,onKeyDown:w,onWheel:S,children:[s(Uo,{from:g,to:b}),s("ul",{children:d.slice(0,l).map(y=>s(Go,{row:y,by:o,from:g,to:b,now:i},y.name))})]}),d.length>l&&
s("p",{children:s("button",{type:"button",onClick:()=>f(l+4*Pr),children:["Show more: ",d.length-l," are left"]})}),s("p",{class:"empty",children:"The newest 10\
,000 decisions. A short bar with an open end: the gang is gone, and no decision says since when."})]})}function Uo({from:e,to:n}){let t=n-e>864e5;return s("div",
{class:"axis","aria-hidden":"true",children:[s("span",{children:"UTC"}),s("div",{class:"track",children:Or(e,n).map(r=>s("span",{style:{left:`${100*(r-e)/(n-e)}\
%`},children:new Date(r).toISOString().slice(t?5:11,n-e<12e4?19:16).replace("T"," ")},r))})]})}function Go({row:e,by:n,from:t,to:r,now:i}){return s("li",{children:[
n==="gang"?s("a",{href:De(e.name),children:e.name}):s("span",{children:e.name}),s("div",{class:"track",children:e.intervals.map(o=>s(qo,{one:o,from:t,to:r,now:i},
`${o.gang} ${o.start}`))})]})}function qo({one:e,from:n,to:t,now:r}){let i=Math.min(e.end,Math.max(r,e.start)),o=Lr({...e,end:i},n,t);if(!o)return null;let a=Be(
i-e.start),c={now:`for ${a}`,known:`for ${a}, then evicted`,unknown:"end unknown"},l=`${e.gang}${e.node?` on ${e.node}`:""}: ${e.pods} pods from ${new Date(e.start).
toISOString().slice(0,19)}Z, ${c[e.ended]}`;return s("a",{class:`interval ${e.ended}`,href:De(e.gang),title:l,"aria-label":l,tabIndex:-1,style:{left:`${o.left}%`,
width:e.ended==="unknown"?"1.5rem":`${o.width}%`,color:qe(e.gang)}})}var k=Symbol("NOT_RESOLVED");function G(e,n){return{tagName:e,nodeKind:"scalar",implicit:n.implicit??!1,matchByTagPrefix:n.matchByTagPrefix??!1,implicitFirstChars:n.
implicitFirstChars??null,resolve:n.resolve,identify:n.identify,represent:n.represent??(t=>String(t)),representTagName:n.representTagName??(()=>e)}}function it(e,n){
let t=n.finalize===void 0;return{tagName:e,nodeKind:"sequence",implicit:!1,matchByTagPrefix:n.matchByTagPrefix??!1,create:n.create,addItem:n.addItem,finalize:n.
finalize??(r=>r),carrierIsResult:t,identify:n.identify,represent:n.represent??(r=>r),representTagName:n.representTagName??(()=>e)}}function bn(e,n){let t=n.finalize===
void 0;return{tagName:e,nodeKind:"mapping",implicit:!1,matchByTagPrefix:n.matchByTagPrefix??!1,create:n.create,addPair:n.addPair,has:n.has,keys:n.keys,get:n.get,
finalize:n.finalize??(r=>r),carrierIsResult:t,identify:n.identify,represent:n.represent??(r=>r),representTagName:n.representTagName??(()=>e)}}var Ko=G("tag:yaml\
.org,2002:str",{resolve:e=>e,identify:e=>typeof e=="string"}),jo=["","~","null","Null","NULL"],Wo=G("tag:yaml.org,2002:null",{implicit:!0,implicitFirstChars:["",
"~","n","N"],resolve:e=>jo.indexOf(e)!==-1?null:k,identify:e=>e===null,represent:()=>"null"}),Ho=G("tag:yaml.org,2002:null",{implicit:!0,implicitFirstChars:["n"],
resolve:(e,n)=>e==="null"||n&&e===""?null:k,identify:e=>e===null,represent:()=>"null"}),Qo=["","~","null","Null","NULL"],Yo=G("tag:yaml.org,2002:null",{implicit:!0,
implicitFirstChars:["","~","n","N"],resolve:e=>Qo.indexOf(e)!==-1?null:k,identify:e=>e===null,represent:()=>"null"}),Vo=["true","True","TRUE"],zo=["false","Fals\
e","FALSE"],Xo=G("tag:yaml.org,2002:bool",{implicit:!0,implicitFirstChars:["t","T","f","F"],resolve:e=>Vo.indexOf(e)!==-1?!0:zo.indexOf(e)!==-1?!1:k,identify:e=>Object.
prototype.toString.call(e)==="[object Boolean]",represent:e=>e?"true":"false"}),Jo=["true"],Zo=["false"],es=G("tag:yaml.org,2002:bool",{implicit:!0,implicitFirstChars:[
"t","f"],resolve:e=>Jo.indexOf(e)!==-1?!0:Zo.indexOf(e)!==-1?!1:k,identify:e=>Object.prototype.toString.call(e)==="[object Boolean]",represent:e=>e?"true":"fals\
e"}),ns=["true","True","TRUE","y","Y","yes","Yes","YES","on","On","ON"],ts=["false","False","FALSE","n","N","no","No","NO","off","Off","OFF"],rs=G("tag:yaml.org\
,2002:bool",{implicit:!0,implicitFirstChars:["y","Y","n","N","t","T","f","F","o","O"],resolve:e=>ns.indexOf(e)!==-1?!0:ts.indexOf(e)!==-1?!1:k,identify:e=>Object.
prototype.toString.call(e)==="[object Boolean]",represent:e=>e?"true":"false"}),is=new RegExp("^(?:0o[0-7]+|0x[0-9a-fA-F]+|[-+]?[0-9]+)$"),os=new RegExp("^(?:[-\
+]?0b[0-1]+|[-+]?0o[0-7]+|[-+]?0x[0-9a-fA-F]+|[-+]?[0-9]+)$");function ss(e){let n=e,t=1;return(n[0]==="-"||n[0]==="+")&&(n[0]==="-"&&(t=-1),n=n.slice(1)),n.startsWith(
"0b")?t*parseInt(n.slice(2),2):n.startsWith("0o")?t*parseInt(n.slice(2),8):n.startsWith("0x")?t*parseInt(n.slice(2),16):t*parseInt(n,10)}function as(e,n){if(n){
if(!os.test(e))return k}else if(!is.test(e))return k;let t=ss(e);return Number.isFinite(t)?t:k}var Jr=G("tag:yaml.org,2002:int",{implicit:!0,implicitFirstChars:[
"-","+",..."0123456789"],resolve:as,identify:e=>Number.isInteger(e)&&!Object.is(e,-0)&&e.toString(10).indexOf("e")<0,represent:e=>e.toString(10)}),cs=new RegExp(
"^-?(?:0|[1-9][0-9]*)$"),ls=new RegExp("^(?:[-+]?0b[0-1]+|[-+]?0o[0-7]+|[-+]?0x[0-9a-fA-F]+|[-+]?[0-9]+)$");function us(e){let n=e,t=1;return(n[0]==="-"||n[0]===
"+")&&(n[0]==="-"&&(t=-1),n=n.slice(1)),n.startsWith("0b")?t*parseInt(n.slice(2),2):n.startsWith("0o")?t*parseInt(n.slice(2),8):n.startsWith("0x")?t*parseInt(n.
slice(2),16):t*parseInt(n,10)}function fs(e,n){if(n){if(!ls.test(e))return k}else if(!cs.test(e))return k;let t=us(e);return Number.isFinite(t)?t:k}var ds=G("ta\
g:yaml.org,2002:int",{implicit:!0,implicitFirstChars:["-",..."0123456789"],resolve:fs,identify:e=>Number.isInteger(e)&&!Object.is(e,-0)&&e.toString(10).indexOf(
"e")<0,represent:e=>e.toString(10)}),ps=new RegExp("^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+|[-+]?(?:0|[1-9][0-9\
_]*))$");function ms(e){let n=e.replace(/_/g,""),t=1;if((n[0]==="-"||n[0]==="+")&&(n[0]==="-"&&(t=-1),n=n.slice(1)),n.startsWith("0b"))return t*parseInt(n.slice(
2),2);if(n.startsWith("0x"))return t*parseInt(n.slice(2),16);if(n.includes(":")){let r=0;for(let i of n.split(":"))r=r*60+Number(i);return t*r}return n!=="0"&&n[0]===
"0"?t*parseInt(n,8):t*parseInt(n,10)}function gs(e){if(!ps.test(e))return k;let n=ms(e);return Number.isFinite(n)?n:k}var Jn=G("tag:yaml.org,2002:int",{implicit:!0,
implicitFirstChars:["-","+",..."0123456789"],resolve:gs,identify:e=>Number.isInteger(e)&&!Object.is(e,-0)&&e.toString(10).indexOf("e")<0,represent:e=>e.toString(
10)}),hs=new RegExp("^(?:[-+]?[0-9]+(?:\\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|[-+]?\\.[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$"),_s=new RegExp(
"^(?:[-+]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$");function bs(e){if(!hs.test(e))return k;let n=e.toLowerCase(),t=n[0]==="-"?-1:1;if("+-".includes(n[0])&&(n=n.
slice(1)),n===".inf")return t===1?Number.POSITIVE_INFINITY:Number.NEGATIVE_INFINITY;if(n===".nan")return NaN;let r=t*parseFloat(n);return Number.isFinite(r)||_s.
test(e)?r:k}function ys(e){if(isNaN(e))return".nan";if(e===Number.POSITIVE_INFINITY)return".inf";if(e===Number.NEGATIVE_INFINITY)return"-.inf";if(Object.is(e,-0))
return"-0.0";let n=e.toString(10);return/^[-+]?[0-9]+e/.test(n)?n.replace("e",".e"):n}var Zr=G("tag:yaml.org,2002:float",{implicit:!0,implicitFirstChars:["-","+",
".",..."0123456789"],resolve:bs,identify:e=>typeof e=="number"&&(!Number.isInteger(e)||Object.is(e,-0)||e.toString(10).indexOf("e")>=0),represent:ys}),vs=new RegExp(
"^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]*)?(?:[eE][-+]?[0-9]+)?$"),Ss=new RegExp("^(?:[-+]?[0-9]+(?:\\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|[-+]?\\.[0-9]+(?:[eE][-+]?[0-9]+)?|[-+\
]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$");function ws(e,n){if(n){if(!Ss.test(e))return k;let r=e.toLowerCase(),i=r[0]==="-"?-1:1;if("+-".includes(r[0])&&(r=r.
slice(1)),r===".inf")return i===1?Number.POSITIVE_INFINITY:Number.NEGATIVE_INFINITY;if(r===".nan")return NaN;let o=i*parseFloat(r);return Number.isFinite(o)?o:k}
if(!vs.test(e))return k;let t=Number(e);return Number.isFinite(t)?t:k}function Ts(e){if(isNaN(e))return".nan";if(e===Number.POSITIVE_INFINITY)return".inf";if(e===
Number.NEGATIVE_INFINITY)return"-.inf";if(Object.is(e,-0))return"-0.0";let n=e.toString(10);return/^[-+]?[0-9]+e/.test(n)?n.replace("e",".e"):n}var As=G("tag:ya\
ml.org,2002:float",{implicit:!0,implicitFirstChars:["-",..."0123456789"],resolve:ws,identify:e=>typeof e=="number"&&(!Number.isInteger(e)||Object.is(e,-0)||e.toString(
10).indexOf("e")>=0),represent:Ts}),ks=new RegExp("^(?:[-+]?(?:(?:[0-9][0-9_]*)?\\.[0-9_]*)(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\\.[0-9_]*|[-+]?\\\
.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$"),Es=new RegExp("^(?:[-+]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$");function xs(e){if(!ks.test(e))return k;let n=e.toLowerCase().
replace(/_/g,""),t=n[0]==="-"?-1:1;if("+-".includes(n[0])&&(n=n.slice(1)),n===".inf")return t===1?Number.POSITIVE_INFINITY:Number.NEGATIVE_INFINITY;if(n===".nan")
return NaN;let r=0;if(n.includes(":")){for(let i of n.split(":"))r=r*60+Number(i);r*=t}else r=t*parseFloat(n);return Number.isFinite(r)||Es.test(e)?r:k}function Cs(e){
if(isNaN(e))return".nan";if(e===Number.POSITIVE_INFINITY)return".inf";if(e===Number.NEGATIVE_INFINITY)return"-.inf";if(Object.is(e,-0))return"-0.0";let n=e.toString(
10);return/^[-+]?[0-9]+e/.test(n)?n.replace("e",".e"):n}var Zn=G("tag:yaml.org,2002:float",{implicit:!0,implicitFirstChars:["-","+",".",..."0123456789"],resolve:xs,
identify:e=>typeof e=="number"&&(!Number.isInteger(e)||Object.is(e,-0)||e.toString(10).indexOf("e")>=0),represent:Cs}),Ns=G("tag:yaml.org,2002:merge",{implicit:!0,
implicitFirstChars:["<"],resolve:(e,n)=>e==="<<"||n&&e===""?"<<":k,identify:()=>!1}),Is=/^[A-Za-z0-9+/]*={0,2}$/;function Ls(e){let n=e.replace(/\s/g,"");if(n.length%
4!==0||!Is.test(n))return k;let t=atob(n),r=new Uint8Array(t.length);for(let i=0;i<t.length;i++)r[i]=t.charCodeAt(i);return r}function Os(e){let n="";for(let t=0;t<
e.length;t++)n+=String.fromCharCode(e[t]);return btoa(n)}var Ps=G("tag:yaml.org,2002:binary",{resolve:Ls,identify:e=>Object.prototype.toString.call(e)==="[objec\
t Uint8Array]",represent:Os}),Rs=new RegExp("^([0-9][0-9][0-9][0-9])-([0-9][0-9])-([0-9][0-9])$"),$s=new RegExp("^([0-9][0-9][0-9][0-9])-([0-9][0-9]?)-([0-9][0-\
9]?)(?:[Tt]|[ \\t]+)([0-9][0-9]?):([0-9][0-9]):([0-9][0-9])(?:\\.([0-9]*))?(?:[ \\t]*(Z|([-+])([0-9][0-9]?)(?::([0-9][0-9]))?))?$");function Dr(e,n,t,r=0,i=0,o=0,a=0){
let c=new Date(Date.UTC(e,n,t,r,i,o,a));return c.setUTCFullYear(e,n,t),c}function Ms(e){let n=Rs.exec(e);if(n===null&&(n=$s.exec(e)),n===null)return k;let t=+n[1],
r=+n[2]-1,i=+n[3];if(!n[4]){let u=Dr(t,r,i);return u.getUTCFullYear()!==t||u.getUTCMonth()!==r||u.getUTCDate()!==i?k:u}let o=+n[4],a=+n[5],c=+n[6],l=0;if(o>23||
a>59||c>59)return k;if(n[7]){let u=n[7].slice(0,3);for(;u.length<3;)u+="0";l=+u}let f=Dr(t,r,i,o,a,c,l);if(f.getUTCFullYear()!==t||f.getUTCMonth()!==r||f.getUTCDate()!==
i)return k;if(n[9]){let u=+n[10],p=+(n[11]||0);if(u>23||p>59)return k;let m=(u*60+p)*6e4;f.setTime(f.getTime()-(n[9]==="-"?-m:m))}return f}var Fs=G("tag:yaml.or\
g,2002:timestamp",{implicit:!0,implicitFirstChars:[..."0123456789"],resolve:Ms,identify:e=>e instanceof Date,represent:e=>e.toISOString()}),Ds=it("tag:yaml.org,\
2002:seq",{create:()=>[],addItem:(e,n)=>{e.push(n)},identify:Array.isArray});function yn(e){if(e===null||typeof e!="object"||Array.isArray(e))return!1;let n=Object.
getPrototypeOf(e);return n===null||n===Object.prototype}function Br(e,n){let t={};for(let r of n)e[r]!==void 0&&(t[r]=e[r]);return t}var Bs=it("tag:yaml.org,200\
2:omap",{create:()=>({list:[],seen:new Set}),addItem:(e,n)=>{let t;if(n instanceof Map){if(n.size!==1)return"cannot resolve an ordered map item";t=n.keys().next().
value}else if(yn(n)){let r=Object.keys(n);if(r.length!==1)return"cannot resolve an ordered map item";t=r[0]}else return"cannot resolve an ordered map item";return e.
seen.has(t)?"duplicate key in ordered map":(e.seen.add(t),e.list.push(n),"")},finalize:e=>e.list,identify:()=>!1}),Us=it("tag:yaml.org,2002:pairs",{create:()=>[],
addItem:(e,n)=>{if(n instanceof Map)return n.size!==1?"cannot resolve a pairs item":(e.push(n.entries().next().value),"");if(Object.prototype.toString.call(n)!==
"[object Object]")return"cannot resolve a pairs item";let t=n,r=Object.keys(t);return r.length!==1?"cannot resolve a pairs item":(e.push([r[0],t[r[0]]]),"")},identify:()=>!1}),
Gs=bn("tag:yaml.org,2002:map",{create:()=>({}),identify:yn,represent:e=>{let n=new Map;for(let t of Object.keys(e))n.set(t,e[t]);return n},addPair:(e,n,t)=>{if(n!==
null&&typeof n=="object")return"object-based map does not support complex keys";let r=String(n);return r==="__proto__"?Object.defineProperty(e,r,{value:t,enumerable:!0,
configurable:!0,writable:!0}):e[r]=t,""},has:(e,n)=>n!==null&&typeof n=="object"?!1:Object.prototype.hasOwnProperty.call(e,String(n)),keys:e=>Object.keys(e),get:(e,n)=>{
let t=String(n);return Object.prototype.hasOwnProperty.call(e,t)?e[t]:null}}),qs=bn("tag:yaml.org,2002:set",{create:()=>new Set,identify:e=>e instanceof Set,represent:e=>{
let n=new Map;for(let t of e)n.set(t,null);return n},addPair:(e,n,t)=>t!==null?"cannot resolve a set item":(e.add(n),""),has:(e,n)=>e.has(n),keys:e=>e.keys(),get:()=>null});
function Ks(){return{scalar:Object.create(null),sequence:Object.create(null),mapping:Object.create(null)}}function js(){return{scalar:[],sequence:[],mapping:[]}}
function Ws(e){let n=[];for(let t of e){let r=n.length;for(let i=0;i<n.length;i++){let o=n[i];if(o.nodeKind===t.nodeKind&&o.tagName===t.tagName&&o.matchByTagPrefix===
t.matchByTagPrefix){r=i;break}}n[r]=t}return n}var vn=class ei{tags;implicitScalarTags;implicitScalarByFirstChar;implicitScalarAnyFirstChar;defaultScalarTag;defaultSequenceTag;defaultMappingTag;exact;prefix;constructor(n){
let t=Ws(n),r=[],i=Ks(),o=js();for(let u of t){if(u.nodeKind==="scalar"&&u.implicit){if(u.matchByTagPrefix)throw new Error("Implicit scalar tags cannot match by\
 tag prefix");r.push(u)}switch(u.nodeKind){case"scalar":u.matchByTagPrefix?o.scalar.push(u):i.scalar[u.tagName]=u;break;case"sequence":u.matchByTagPrefix?o.sequence.
push(u):i.sequence[u.tagName]=u;break;case"mapping":u.matchByTagPrefix?o.mapping.push(u):i.mapping[u.tagName]=u}}let a=r.filter(u=>u.implicitFirstChars===null),
c=new Set;for(let u of r)if(u.implicitFirstChars!==null)for(let p of u.implicitFirstChars)c.add(p);let l=new Map;for(let u of c)l.set(u,r.filter(p=>p.implicitFirstChars===
null||p.implicitFirstChars.indexOf(u)!==-1));let f=i.scalar["tag:yaml.org,2002:str"];if(!f)throw new Error("schema does not define the default scalar tag (tag:y\
aml.org,2002:str)");this.tags=t,this.implicitScalarTags=r,this.implicitScalarByFirstChar=l,this.implicitScalarAnyFirstChar=a,this.defaultScalarTag=f,this.defaultSequenceTag=
i.sequence["tag:yaml.org,2002:seq"],this.defaultMappingTag=i.mapping["tag:yaml.org,2002:map"],this.exact=i,this.prefix=o}lookupScalarTag(n){let t=this.exact.scalar[n];
if(t)return t;for(let r of this.prefix.scalar)if(n.startsWith(r.tagName))return r}lookupSequenceTag(n){let t=this.exact.sequence[n];if(t)return t;for(let r of this.
prefix.sequence)if(n.startsWith(r.tagName))return r}lookupMappingTag(n){let t=this.exact.mapping[n];if(t)return t;for(let r of this.prefix.mapping)if(n.startsWith(
r.tagName))return r}resolveImplicitScalarTag(n){let t=this.implicitScalarByFirstChar.get(n.charAt(0))??this.implicitScalarAnyFirstChar;for(let i of t){let o=i.resolve(
n,!1,i.tagName);if(o!==k)return{value:o,tag:i}}let r=this.defaultScalarTag;return{value:r.resolve(n,!1,r.tagName),tag:r}}withTags(...n){let t=[];for(let r of n)
t=t.concat(r);return new ei([...this.tags,...t])}},ot=new vn([Ko,Ds,Gs]),ou=new vn([...ot.tags,Ho,es,ds,As]),Hs=new vn([...ot.tags,Wo,Xo,Jr,Zr]),Qs=new vn([...ot.
tags,Yo,rs,Jn,Zn,Fs,Ns,Ps,Bs,Us,qs]),Ys=Qs.withTags({...Jn,resolve:(e,n,t)=>{let r=Jn.resolve(e,n,t);return r===k?Jr.resolve(e,n,t):r}},{...Zn,resolve:(e,n,t)=>{
let r=Zn.resolve(e,n,t);return r===k?Zr.resolve(e,n,t):r}}),su=bn("tag:yaml.org,2002:map",{create:()=>new Map,addPair:(e,n,t)=>(e.set(n,t),""),has:(e,n)=>e.has(
n),keys:e=>e.keys(),get:(e,n)=>e.get(n),identify:e=>e instanceof Map||yn(e),represent:e=>{if(e instanceof Map)return e;let n=new Map,t=e;for(let r of Object.keys(
t))n.set(r,t[r]);return n}});function Ur(e){if(Array.isArray(e)){let n=Array.prototype.slice.call(e);for(let t=0;t<n.length;t++){if(Array.isArray(n[t]))return null;
typeof n[t]=="object"&&Object.prototype.toString.call(n[t])==="[object Object]"&&(n[t]="[object Object]")}return String(n)}return typeof e=="object"&&Object.prototype.
toString.call(e)==="[object Object]"?"[object Object]":String(e)}var au=bn("tag:yaml.org,2002:map",{create:()=>({}),identify:yn,represent:e=>{let n=new Map;for(let t of Object.
keys(e))n.set(t,e[t]);return n},addPair:(e,n,t)=>{let r=Ur(n);return r===null?"nested arrays are not supported inside keys":(r==="__proto__"?Object.defineProperty(
e,r,{value:t,enumerable:!0,configurable:!0,writable:!0}):e[r]=t,"")},has:(e,n)=>{let t=Ur(n);return t!==null&&Object.prototype.hasOwnProperty.call(e,t)},keys:e=>Object.
keys(e),get:(e,n)=>{let t=String(n);return Object.prototype.hasOwnProperty.call(e,t)?e[t]:null}}),Vs={maxLength:79,indent:1,linesBefore:3,linesAfter:2};function Hn(e,n,t,r,i){
let o="",a="",c=Math.floor(i/2)-1;return r-n>c&&(o=" ... ",n=r-c+o.length),t-r>c&&(a=" ...",t=r+c-a.length),{str:o+e.slice(n,t).replace(/\t/g,"\u2192")+a,pos:r-
n+o.length}}function Qn(e,n){return" ".repeat(Math.max(n-e.length,0))+e}function zs(e,n){if(!e.buffer)return null;let t={...Vs,...n},r=/\r?\n|\r|\0/g,i=[0],o=[],
a,c=-1;for(;a=r.exec(e.buffer);)o.push(a.index),i.push(a.index+a[0].length),e.position<=a.index&&c<0&&(c=i.length-2);c<0&&(c=i.length-1);let l="",f=Math.min(e.line+
t.linesAfter,o.length).toString().length,u=t.maxLength-(t.indent+f+3);for(let m=1;m<=t.linesBefore&&!(c-m<0);m++){let d=Hn(e.buffer,i[c-m],o[c-m],e.position-(i[c]-
i[c-m]),u);l=`${" ".repeat(t.indent)}${Qn((e.line-m+1).toString(),f)} | ${d.str}
${l}`}let p=Hn(e.buffer,i[c],o[c],e.position,u);l+=`${" ".repeat(t.indent)}${Qn((e.line+1).toString(),f)} | ${p.str}
`,l+=`${"-".repeat(t.indent+f+3+p.pos)}^
`;for(let m=1;m<=t.linesAfter&&!(c+m>=o.length);m++){let d=Hn(e.buffer,i[c+m],o[c+m],e.position-(i[c]-i[c+m]),u);l+=`${" ".repeat(t.indent)}${Qn((e.line+m+1).toString(),
f)} | ${d.str}
`}return l.replace(/\n$/,"")}function Gr(e,n){let t="";return e.mark?(e.mark.name&&(t+=`in "${e.mark.name}" `),t+=`(${e.mark.line+1}:${e.mark.column+1})`,!n&&e.
mark.snippet&&(t+=`

${e.mark.snippet}`),`${e.reason} ${t}`):e.reason}var je=class ni extends Error{reason;mark;constructor(n,t){super(),this.name="YAMLException",this.reason=n,this.
mark=t,this.message=Gr(this,!1),Error.captureStackTrace&&Error.captureStackTrace(this,this.constructor)}toString(n){return`${this.name}: ${Gr(this,n)}`}static throwAt(n,t,r,i=""){
let o=0,a=0;for(let l=0;l<t;l++){let f=n.charCodeAt(l);f===10?(o++,a=l+1):f===13&&(o++,n.charCodeAt(l+1)===10&&l++,a=l+1)}let c={name:i,buffer:n,position:t,line:o,
column:t-a};throw c.snippet=zs(c),new ni(r,c)}},L={DOCUMENT:1,SEQUENCE:2,MAPPING:3,SCALAR:4,ALIAS:5,POP:6},A={PLAIN:1,SINGLE_QUOTED:2,DOUBLE_QUOTED:3,LITERAL_BLOCK:4,
FOLDED_BLOCK:5},_e={BLOCK:1,FLOW:2},X={CLIP:1,STRIP:2,KEEP:3},Xs=-1;function qr(e){switch(e){case 48:return"\0";case 97:return"\x07";case 98:return"\b";case 116:
return"	";case 9:return"	";case 110:return`
`;case 118:return"\v";case 102:return"\f";case 114:return"\r";case 101:return"\x1B";case 32:return" ";case 34:return'"';case 47:return"/";case 92:return"\\";case 78:
return"\x85";case 95:return"\xA0";case 76:return"\u2028";case 80:return"\u2029";default:return""}}var ti=new Array(256),ri=new Array(256);for(let e=0;e<256;e++)
ti[e]=qr(e)?1:0,ri[e]=qr(e);function Js(e){return e<=65535?String.fromCharCode(e):String.fromCharCode((e-65536>>10)+55296,(e-65536&1023)+56320)}function Zs(e){return e>=
48&&e<=57?e-48:(e|32)-97+10}function ea(e){return e===120?2:e===117?4:8}function gn(e,n,t){let r=0;for(;n<t;){let i=e.charCodeAt(n);if(i===10)r++,n++;else if(i===
13)r++,n++,e.charCodeAt(n)===10&&n++;else if(i===32||i===9)n++;else break}return{position:n,breaks:r}}function st(e){return e===1?" ":`
`.repeat(e-1)}function na(e,n,t){let r="",i=n,o=n,a=n;for(;i<t;){let c=e.charCodeAt(i);if(c===10||c===13){r+=e.slice(o,a);let l=gn(e,i,t);r+=st(l.breaks),i=o=a=
l.position}else i++,c!==32&&c!==9&&(a=i)}return r+e.slice(o,a)}function ta(e,n,t){let r="",i=n,o=n,a=n;for(;i<t;){let c=e.charCodeAt(i);if(c===39)r+=e.slice(o,i)+
"'",i+=2,o=a=i;else if(c===10||c===13){r+=e.slice(o,a);let l=gn(e,i,t);r+=st(l.breaks),i=o=a=l.position}else i++,c!==32&&c!==9&&(a=i)}return r+e.slice(o,t)}function ra(e,n,t){
let r="",i=n,o=n,a=n;for(;i<t;){let c=e.charCodeAt(i);if(c===92){r+=e.slice(o,i),i++;let l=e.charCodeAt(i);if(l===10||l===13)i=gn(e,i,t).position;else if(l<256&&
ti[l])r+=ri[l],i++;else{let f=ea(l),u=0;for(;f>0;f--){i++;let p=Zs(e.charCodeAt(i));u=(u<<4)+p}r+=Js(u),i++}o=a=i}else if(c===10||c===13){r+=e.slice(o,a);let l=gn(
e,i,t);r+=st(l.breaks),i=o=a=l.position}else i++,c!==32&&c!==9&&(a=i)}return r+e.slice(o,t)}function Kr(e,n,t,r,i,o){let a=r<0?0:r,c=e.slice(n,t).replace(/\r\n?/g,
`
`),l=c===""?[]:(c.endsWith(`
`)?c.slice(0,-1):c).split(`
`),f="",u=!1,p=0,m=!1;for(let d of l){let g=0;for(;g<a&&d.charCodeAt(g)===32;)g++;if(r<0||g>=d.length){p++;continue}let b=d.slice(a),h=b.charCodeAt(0);o?h===32||
h===9?(m=!0,f+=`
`.repeat(u?1+p:p)):m?(m=!1,f+=`
`.repeat(p+1)):p===0?u&&(f+=" "):f+=`
`.repeat(p):f+=`
`.repeat(u?1+p:p),f+=b,u=!0,p=0}return i===X.KEEP?f+=`
`.repeat(u?1+p:p):i!==X.STRIP&&u&&(f+=`
`),f}function ia(e,n){if(n.valueStart===Xs)return"";let{valueStart:t,valueEnd:r}=n;if(n.fast)return e.slice(t,r);switch(n.style){case A.SINGLE_QUOTED:return ta(
e,t,r);case A.DOUBLE_QUOTED:return ra(e,t,r);case A.LITERAL_BLOCK:return Kr(e,t,r,n.indent,n.chomping,!1);case A.FOLDED_BLOCK:return Kr(e,t,r,n.indent,n.chomping,
!0);default:return na(e,t,r)}}var oa=Object.assign(Object.create(null),{"!":"!","!!":"tag:yaml.org,2002:"}),sa="-#;/?:@&=+$_.~*'()",cu=sa+"!,[]";function Yn(e){let n="",t=0;for(;t<e.length;){if(e.charCodeAt(t)!==37){n+=e[t++];continue}let r=parseInt(e.slice(t+1,t+3),16);if(t+=3,r>=192){let i=r<224?1:r<240?
2:3;for(r&=(1<<6-i)-1;i-- >0;)r=r<<6|parseInt(e.slice(t+1,t+3),16)&63,t+=3}r<65536?n+=String.fromCharCode(r):(r-=65536,n+=String.fromCharCode(55296|r>>10,56320|
r&1023))}return n}function ii(e,n){if(e.startsWith("!<")&&e.endsWith(">"))return Yn(e.slice(2,-1));let t=e.indexOf("!",1),r=t===-1?"!":e.slice(0,t+1);return Yn(
n?.[r]??oa[r]??r)+Yn(e.slice(r.length))}var Ee=-1,aa="tag:yaml.org,2002:merge",at={filename:"",schema:Hs,json:!1,maxTotalMergeKeys:1e4,maxAliases:-1};function ca(e){return"tagStart"in e&&e.tagStart!==
Ee?e.tagStart:"anchorStart"in e&&e.anchorStart!==Ee?e.anchorStart:"valueStart"in e&&e.valueStart!==Ee?e.valueStart:"start"in e?e.start:0}function D(e,n){je.throwAt(
e.source,e.position,n,e.filename)}function oi(e,n,t,r){try{return t.finalize(r)}catch(i){if(i instanceof je)throw i;je.throwAt(e.source,n,i instanceof Error?i.message:
String(i),e.filename)}}function la(e,n){let t=ia(e.source,n),r=n.tagStart===Ee?"":e.source.slice(n.tagStart,n.tagEnd),i=e.schema.defaultScalarTag;if(r!==""){if(r===
"!")return{value:t,tag:i};let o=ii(r,e.tagHandlers),a=e.schema.lookupScalarTag(o);if(a){let l=a.resolve(t,!0,o);return l===k&&D(e,`cannot resolve a node with !<${o}\
> explicit tag`),{value:l,tag:a}}let c=e.schema.lookupMappingTag(o)??e.schema.lookupSequenceTag(o);if(c){t!==""&&D(e,`cannot resolve a node with !<${o}> explici\
t tag`);let l=c.create(o);return{value:c.carrierIsResult?l:oi(e,e.position,c,l),tag:c}}D(e,`unknown scalar tag !<${o}>`)}return n.style===A.PLAIN?e.schema.resolveImplicitScalarTag(
t):{value:i.resolve(t,!1,i.tagName),tag:i}}function jr(e,n,t){let r=n.tagStart===Ee?"":e.source.slice(n.tagStart,n.tagEnd);return r===""||r==="!"?t:ii(r,e.tagHandlers)}
function si(e){return e.nodeKind==="mapping"}function Wr(e){e.totalMergeKeys++,e.maxTotalMergeKeys!==-1&&e.totalMergeKeys>e.maxTotalMergeKeys&&D(e,`merge keys e\
xceeded maxTotalMergeKeys (${e.maxTotalMergeKeys})`)}function Hr(e,n,t,r){Wr(e);for(let i of r.keys(t)){if(Wr(e),n.tag.has(n.value,i))continue;let o=n.tag.addPair(
n.value,i,r.get(t,i));o&&D(e,o),n.overridable??=new Set,n.overridable.add(i)}}function ua(e,n,t,r){if(e.position=n.keyPosition,si(r))Hr(e,n,t,r);else if(r.nodeKind===
"sequence"&&Array.isArray(t)){t.length>100&&D(e,"abnormal merge sequence size");for(let i of t){let o=e.nodeTags.get(i);o||D(e,"cannot merge mappings; the provi\
ded source object is unacceptable"),Hr(e,n,i,o)}}else D(e,"cannot merge mappings; the provided source object is unacceptable")}function fa(e,n,t,r,i){if(e.position=
n.keyPosition,n.keyIsMerge){ua(e,n,r,i);return}!e.json&&n.tag.has(n.value,t)&&!n.overridable?.has(t)&&D(e,"duplicated mapping key");let o=n.tag.addPair(n.value,
t,r);o&&D(e,o),n.overridable?.delete(t)}function Vn(e,n,t){let r=e.frames[e.frames.length-1];if(r.kind==="document")r.value=n,r.hasValue=!0;else if(r.kind==="se\
quence"){si(t)&&e.nodeTags.set(n,t);let i=r.tag.addItem(r.value,n,r.index++);i&&D(e,i)}else if(r.hasKey){let i=r.key;r.key=void 0,r.hasKey=!1,fa(e,r,i,n,t)}else
r.key=n,r.keyPosition=e.position,r.hasKey=!0,r.keyIsMerge=t.tagName===aa}function zn(e,n,t,r,i){if(n.anchorStart!==Ee){let o={value:t,tag:r,isValueFinal:i};return e.
anchors.set(e.source.slice(n.anchorStart,n.anchorEnd),o),o}return null}function da(e,n){let t={...at,...n,events:e,documents:[],eventIndex:0,position:0,frames:[],
anchors:new Map,nodeTags:new Map,tagHandlers:Object.create(null),totalMergeKeys:0,aliasCount:0};for(;t.eventIndex<t.events.length;){let r=t.events[t.eventIndex++];
switch(t.position=ca(r),r.type){case L.DOCUMENT:t.anchors=new Map,t.nodeTags=new Map,t.aliasCount=0,t.tagHandlers=Object.create(null);for(let i of r.directives)
i.kind==="tag"&&(t.tagHandlers[i.handle]=i.prefix);t.frames.push({kind:"document",position:t.position,value:void 0,hasValue:!1});break;case L.SCALAR:{let{value:i,
tag:o}=la(t,r);zn(t,r,i,o,!0),Vn(t,i,o);break}case L.SEQUENCE:{let i=jr(t,r,"tag:yaml.org,2002:seq"),o=t.schema.lookupSequenceTag(i);o||D(t,`unknown sequence ta\
g !<${i}>`);let a=o.create(i),c=zn(t,r,a,o,o.carrierIsResult);t.frames.push({kind:"sequence",position:t.position,value:a,tag:o,anchor:c,index:0});break}case L.MAPPING:{
let i=jr(t,r,"tag:yaml.org,2002:map"),o=t.schema.lookupMappingTag(i);o||D(t,`unknown mapping tag !<${i}>`);let a=o.create(i),c=zn(t,r,a,o,o.carrierIsResult);t.frames.
push({kind:"mapping",position:t.position,value:a,tag:o,anchor:c,key:void 0,keyPosition:t.position,hasKey:!1,keyIsMerge:!1,overridable:null});break}case L.ALIAS:{
t.maxAliases!==-1&&++t.aliasCount>t.maxAliases&&D(t,`aliases exceeded maxAliases (${t.maxAliases})`);let i=t.source.slice(r.anchorStart,r.anchorEnd),o=t.anchors.
get(i);o||D(t,`unidentified alias "${i}"`),o.isValueFinal||D(t,`recursive alias "${i}" is not supported for tag ${o.tag.tagName} because it uses finalize()`),Vn(
t,o.value,o.tag);break}case L.POP:{let i=t.frames.pop();if(i.kind==="mapping"&&i.hasKey&&(t.position=i.keyPosition,D(t,"incomplete mapping pair in event stream")),
i.kind==="document")t.documents.push(i.value);else{let o=i.tag.carrierIsResult?i.value:oi(t,i.position,i.tag,i.value);i.anchor&&(i.anchor.value=o,i.anchor.isValueFinal=
!0),Vn(t,o,i.tag)}break}}}return t.documents}var E=-1,ai=Object.prototype.hasOwnProperty,Ie=1,ci=2,li=3,hn=4,pa=/[\x00-\x08\x0B\x0C\x0E-\x1F\x7F-\x84\x86-\x9F\uFFFE\uFFFF]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?:[^\uD800-\uDBFF]|^)[\uDC00-\uDFFF]/,
ma=/[,\[\]{}]/,ui=/^(?:!|!!|![0-9A-Za-z-]+!)$/,et=String.raw`(?:%[0-9A-Fa-f]{2}|[0-9A-Za-z\-#;/?:@&=+$,_.!~*'()\[\]])`,fi=String.raw`(?:%[0-9A-Fa-f]{2}|[0-9A-Za-z\-#;/?:@&=+$.~*'()_])`,
ga=new RegExp(`^(?:${et})*$`),ha=new RegExp(`^(?:${fi})+$`),_a=new RegExp(`^(?:!(?:${et})*|${fi}(?:${et})*)$`),ct={filename:"",maxDepth:100};function ba(e,n,t){
e.events.push({type:L.DOCUMENT,explicitStart:n,explicitEnd:t,directives:e.directives})}function di(e,n,t,r,i,o,a){e.events.push({type:L.SEQUENCE,start:n,anchorStart:t,
anchorEnd:r,tagStart:i,tagEnd:o,style:a})}function pi(e,n,t,r,i,o,a){e.events.push({type:L.MAPPING,start:n,anchorStart:t,anchorEnd:r,tagStart:i,tagEnd:o,style:a})}
function Qr(e,n){e.events.splice(n.eventsLength,0,{type:L.MAPPING,start:n.position,anchorStart:E,anchorEnd:E,tagStart:E,tagEnd:E,style:_e.FLOW})}function Pe(e,n,t,r,i,o,a,c,l=X.
CLIP,f=-1,u=!1){e.events.push({type:L.SCALAR,valueStart:n,valueEnd:t,anchorStart:r,anchorEnd:i,tagStart:o,tagEnd:a,style:c,chomping:l,indent:f,fast:u})}function ya(e,n,t){
e.events.push({type:L.ALIAS,anchorStart:n,anchorEnd:t})}function xe(e){e.events.push({type:L.POP})}function H(e){Pe(e,E,E,E,E,E,E,A.PLAIN)}function Yr(){return{
anchorStart:E,anchorEnd:E,tagStart:E,tagEnd:E}}function Ce(e){return{position:e.position,line:e.line,lineStart:e.lineStart,lineIndent:e.lineIndent,firstTabInLine:e.
firstTabInLine,eventsLength:e.events.length}}function Ne(e,n){e.position=n.position,e.line=n.line,e.lineStart=n.lineStart,e.lineIndent=n.lineIndent,e.firstTabInLine=
n.firstTabInLine,e.events.length=n.eventsLength}function _(e,n){je.throwAt(e.input.slice(0,e.length),e.position,n,e.filename)}function M(e){return e===10||e===13}
function Re(e){return e===9||e===32}function te(e){return Re(e)||M(e)}function ue(e){return e===0||te(e)}function we(e){return e===44||e===91||e===93||e===123||
e===125}function va(e){return e>=48&&e<=57?e-48:-1}function Sa(e){if(e>=48&&e<=57)return e-48;let n=e|32;return n>=97&&n<=102?n-97+10:-1}function wa(e){return e===
120?2:e===117?4:e===85?8:0}function Ta(e){return e===48||e===97||e===98||e===116||e===9||e===110||e===118||e===102||e===114||e===101||e===32||e===34||e===47||e===
92||e===78||e===95||e===76||e===80}function _n(e){e.input.charCodeAt(e.position)===10?e.position++:(e.position++,e.input.charCodeAt(e.position)===10&&e.position++),
e.line++,e.lineStart=e.position,e.lineIndent=0,e.firstTabInLine=-1}function U(e,n){let t=0,r=e.input.charCodeAt(e.position),i=e.position===e.lineStart||te(e.input.
charCodeAt(e.position-1));for(;r!==0;){for(;Re(r);)i=!0,r===9&&e.firstTabInLine===-1&&(e.firstTabInLine=e.position),r=e.input.charCodeAt(++e.position);if(n&&i&&
r===35)do r=e.input.charCodeAt(++e.position);while(!M(r)&&r!==0);if(!M(r))break;for(_n(e),t++,i=!0,r=e.input.charCodeAt(e.position);r===32;)e.lineIndent++,r=e.input.
charCodeAt(++e.position)}return t}function Le(e,n=e.position){let t=e.input.charCodeAt(n);if((t===45||t===46)&&t===e.input.charCodeAt(n+1)&&t===e.input.charCodeAt(
n+2)){let r=e.input.charCodeAt(n+3);return r===0||te(r)}return!1}function mi(e){e.position===e.lineStart&&e.input.charCodeAt(e.position)===65279&&(e.position++,
e.lineStart=e.position)}function lt(e){if(e.position!==e.lineStart)return!1;if(Le(e))return!0;if(e.input.charCodeAt(e.position)!==65279)return!1;let n=Ce(e);mi(
e),U(e,!0);let t=e.input.charCodeAt(e.position),r=e.position===e.lineStart&&(t===37||t===45&&Le(e));return Ne(e,n),r}function Vr(e){let n=e.input.charCodeAt(e.position);
for(;n!==0&&!M(n);)n=e.input.charCodeAt(++e.position)}function gi(e,n,t){let r=pa.exec(e.input.slice(n,t));r!==null&&(e.position=n+r.index+r[0].length-1,_(e,"th\
e stream contains non-printable characters"))}function Aa(e,n,t){if(e.input.charCodeAt(e.position)!==33)return!1;n.tagStart!==E&&_(e,"duplication of a tag prope\
rty");let r=e.position,i=!1,o=!1,a="!",c=e.input.charCodeAt(++e.position);c===60?(i=!0,c=e.input.charCodeAt(++e.position)):c===33&&(o=!0,a="!!",c=e.input.charCodeAt(
++e.position));let l=e.position,f;if(i){for(;c!==0&&c!==62;)c=e.input.charCodeAt(++e.position);c!==62&&_(e,"unexpected end of the stream within a verbatim tag"),
f=e.input.slice(l,e.position),e.position++}else{for(;c!==0&&!te(c)&&!(t&&we(c));)c===33&&(o?_(e,"tag suffix cannot contain exclamation marks"):(a=e.input.slice(
l-1,e.position+1),ui.test(a)||_(e,"named tag handle cannot contain such characters"),o=!0,l=e.position+1)),c=e.input.charCodeAt(++e.position);f=e.input.slice(l,
e.position),ma.test(f)&&_(e,"tag suffix cannot contain flow indicator characters")}return f&&!(i?ga.test(f):ha.test(f))&&_(e,`tag name cannot contain such chara\
cters: ${f}`),!i&&a!=="!"&&a!=="!!"&&!ai.call(e.tagHandlers,a)&&_(e,`undeclared tag handle "${a}"`),n.tagStart=r,n.tagEnd=e.position,!0}function ka(e,n){if(e.input.
charCodeAt(e.position)!==38)return!1;n.anchorStart!==E&&_(e,"duplication of an anchor property"),e.position++;let t=e.position;for(;e.input.charCodeAt(e.position)!==
0&&!te(e.input.charCodeAt(e.position))&&!we(e.input.charCodeAt(e.position));)e.position++;return e.position===t&&_(e,"name of an anchor node must contain at lea\
st one character"),n.anchorStart=t,n.anchorEnd=e.position,!0}function Ea(e,n){if(e.input.charCodeAt(e.position)!==42)return!1;(n.anchorStart!==E||n.tagStart!==E)&&
_(e,"alias node should not have any properties"),e.position++;let t=e.position;for(;e.input.charCodeAt(e.position)!==0&&!te(e.input.charCodeAt(e.position))&&!we(
e.input.charCodeAt(e.position));)e.position++;return e.position===t&&_(e,"name of an alias node must contain at least one character"),ya(e,t,e.position),!0}function nt(e,n){
U(e,!1),e.lineIndent<n&&_(e,"deficient indentation")}function xa(e,n,t){if(e.input.charCodeAt(e.position)!==39)return!1;e.position++;let r=e.position,i=!0;for(;e.
input.charCodeAt(e.position)!==0;){let o=e.input.charCodeAt(e.position);if(o===39){if(e.input.charCodeAt(e.position+1)===39){i=!1,e.position+=2;continue}let a=e.
position;return e.position++,Pe(e,r,a,t.anchorStart,t.anchorEnd,t.tagStart,t.tagEnd,A.SINGLE_QUOTED,X.CLIP,-1,i),!0}M(o)?(i=!1,nt(e,n)):e.position===e.lineStart&&
Le(e)?_(e,"unexpected end of the document within a single quoted scalar"):o!==9&&o<32?_(e,"expected valid JSON character"):e.position++}_(e,"unexpected end of t\
he stream within a single quoted scalar")}function Ca(e,n,t){if(e.input.charCodeAt(e.position)!==34)return!1;e.position++;let r=e.position,i=!0;for(;e.input.charCodeAt(
e.position)!==0;){let o=e.input.charCodeAt(e.position);if(o===34){let a=e.position;return e.position++,Pe(e,r,a,t.anchorStart,t.anchorEnd,t.tagStart,t.tagEnd,A.
DOUBLE_QUOTED,X.CLIP,-1,i),!0}if(o===92){i=!1;let a=e.input.charCodeAt(++e.position);if(M(a))nt(e,n);else if(Ta(a))e.position++;else{let c=wa(a);for(c===0&&_(e,
"unknown escape sequence");c-- >0;)e.position++,Sa(e.input.charCodeAt(e.position))<0&&_(e,"expected hexadecimal character");e.position++}}else M(o)?(i=!1,nt(e,n)):
e.position===e.lineStart&&Le(e)?_(e,"unexpected end of the document within a double quoted scalar"):o!==9&&o<32?_(e,"expected valid JSON character"):e.position++}
_(e,"unexpected end of the stream within a double quoted scalar")}function Na(e,n,t){let r=e.input.charCodeAt(e.position),i=X.CLIP,o=-1,a=!1;if(r!==124&&r!==62)
return!1;let c=r===124?A.LITERAL_BLOCK:A.FOLDED_BLOCK;for(e.position++;e.input.charCodeAt(e.position)!==0;){let d=e.input.charCodeAt(e.position),g=va(d);if(d===
43||d===45)i!==X.CLIP&&_(e,"repeat of a chomping mode identifier"),i=d===43?X.KEEP:X.STRIP,e.position++;else if(g>=0)g===0&&_(e,"bad explicit indentation width \
of a block scalar; it cannot be less than one"),a&&_(e,"repeat of an indentation width identifier"),o=n+g-1,a=!0,e.position++;else break}let l=!1;for(;Re(e.input.
charCodeAt(e.position));)l=!0,e.position++;l&&e.input.charCodeAt(e.position)===35&&Vr(e),M(e.input.charCodeAt(e.position))?_n(e):e.input.charCodeAt(e.position)!==
0&&_(e,"a line break is expected");let f=a?o:-1,u=0,p=e.position,m=e.position;for(;e.input.charCodeAt(e.position)!==0;){let d=e.position,g=0;for(;e.input.charCodeAt(
d+g)===32;)g++;let b=e.input.charCodeAt(d+g);if(b===0){f>=0?g>f&&(m=d+g):g>0&&(m=d+g);break}if(lt(e))break;if(!a&&f===-1&&M(b)&&(u=Math.max(u,g)),!a&&f===-1&&!M(
b)&&(b===9&&g<n&&(e.position=d+g,_(e,"tab characters must not be used in indentation")),g>=n&&g<u&&(e.position=d+g,_(e,"bad indentation of a mapping entry"))),f===
-1&&b!==0&&!M(b)&&g<n){e.lineIndent=g,e.position=d+g;break}!a&&b!==0&&!M(b)&&f===-1&&(f=g);let h=f===-1?n+1:f;if(b!==0&&!M(b)&&g<h){e.lineIndent=g,e.position=d+
g;break}Vr(e),m=e.position,M(e.input.charCodeAt(e.position))&&(_n(e),m=e.position)}return gi(e,p,m),Pe(e,p,m,t.anchorStart,t.anchorEnd,t.tagStart,t.tagEnd,c,i,f),
!0}function Ia(e,n){let t=e.input.charCodeAt(e.position),r=n===Ie;if(t===0||te(t)||t===35||t===38||t===42||t===33||t===124||t===62||t===39||t===34||t===37||t===
64||t===96||we(t))return!1;if(t===63||t===45){let i=e.input.charCodeAt(e.position+1);if(ue(i)||r&&we(i))return!1}return!0}function La(e,n,t,r){if(!Ia(e,t))return!1;
let i=e.position,o=e.position,a=e.input.charCodeAt(e.position),c=t===Ie,l=!1;for(;a!==0&&!lt(e);){if(a===58){let f=e.input.charCodeAt(e.position+1);if(ue(f)||c&&
we(f))break}else if(a===35){if(te(e.input.charCodeAt(e.position-1)))break}else{if(c&&we(a))break;if(M(a)){let f=e.position,u=e.line,p=e.lineStart,m=e.lineIndent;
if(U(e,!1),e.lineIndent>=n){l=!0,a=e.input.charCodeAt(e.position);continue}e.position=f,e.line=u,e.lineStart=p,e.lineIndent=m;break}}Re(a)||(o=e.position+1),a=e.
input.charCodeAt(++e.position)}return o===i?!1:(gi(e,i,o),Pe(e,i,o,r.anchorStart,r.anchorEnd,r.tagStart,r.tagEnd,A.PLAIN,X.CLIP,-1,!l),!0)}function Ke(e,n){let t=e.
line;U(e,!0),(e.line>t&&e.lineIndent<n||e.firstTabInLine!==-1&&e.lineIndent<n)&&_(e,"deficient indentation")}function Oa(e,n,t){let r=e.input.charCodeAt(e.position),
i=r===123,o=e.position,a=!0;if(r!==91&&r!==123)return!1;let c=i?125:93;for(i?pi(e,o,t.anchorStart,t.anchorEnd,t.tagStart,t.tagEnd,_e.FLOW):di(e,o,t.anchorStart,
t.anchorEnd,t.tagStart,t.tagEnd,_e.FLOW),e.position++;e.input.charCodeAt(e.position)!==0;){Ke(e,n);let l=e.input.charCodeAt(e.position);if(l===c)return e.position++,
xe(e),!0;a?l===44&&_(e,"expected the node content, but found ','"):_(e,"missed comma between flow collection entries");let f=!1,u=!1;l===63&&te(e.input.charCodeAt(
e.position+1))&&(f=u=!0,e.position+=1,Ke(e,n));let p=e.line,m=Ce(e),d=Oe(e,n,Ie,!1,!0);Ke(e,n),l=e.input.charCodeAt(e.position),(i||u||e.line===p)&&l===58?(f=!0,
e.position++,Ke(e,n),i||Qr(e,m),d||H(e),Oe(e,n,Ie,!1,!0)||H(e),Ke(e,n),i||xe(e)):i&&f?(d||H(e),H(e)):i?H(e):f&&(Qr(e,m),d||H(e),H(e),xe(e)),l=e.input.charCodeAt(
e.position),l===44?(a=!0,e.position++):a=!1}_(e,"unexpected end of the stream within a flow collection")}function zr(e,n,t){if(e.firstTabInLine!==-1||e.input.charCodeAt(
e.position)!==45||!ue(e.input.charCodeAt(e.position+1)))return!1;for(di(e,e.position,t.anchorStart,t.anchorEnd,t.tagStart,t.tagEnd,_e.BLOCK);e.input.charCodeAt(
e.position)===45&&ue(e.input.charCodeAt(e.position+1));){e.firstTabInLine!==-1&&(e.position=e.firstTabInLine,_(e,"tab characters must not be used in indentation"));
let r=e.line;e.position++;let i=U(e,!0)>0;if(e.firstTabInLine!==-1&&e.input.charCodeAt(e.position)===45&&ue(e.input.charCodeAt(e.position+1))&&_(e,"bad indentat\
ion of a sequence entry"),i&&e.lineIndent<=n?H(e):Oe(e,n,li,!1,!0),U(e,!0),e.lineIndent<n||e.position>=e.length)break;e.lineIndent>n&&_(e,"bad indentation of a \
sequence entry"),e.line===r&&e.input.charCodeAt(e.position)===45&&ue(e.input.charCodeAt(e.position+1))&&_(e,"bad indentation of a sequence entry")}return xe(e),
!0}function Xn(e,n,t,r){let i=!1,o=!1,a=!1,c=!1;if(e.firstTabInLine!==-1)return!1;let l=e.input.charCodeAt(e.position);for(;l!==0;){!i&&e.firstTabInLine!==-1&&(e.
position=e.firstTabInLine,_(e,"tab characters must not be used in indentation"));let f=e.input.charCodeAt(e.position+1),u=e.line;if((l===63||l===58)&&ue(f))a||(pi(
e,e.position,r.anchorStart,r.anchorEnd,r.tagStart,r.tagEnd,_e.BLOCK),a=!0),l===63?(i&&H(e),o=!0,i=!0):(i||(H(e),o=!0),i=!1),e.position+=1,c=!0;else{i&&(H(e),i=!1);
let p=Ce(e);if(!Oe(e,t,ci,!1,!0))break;if(e.line===u){for(l=e.input.charCodeAt(e.position);Re(l);)l=e.input.charCodeAt(++e.position);if(l===58)l=e.input.charCodeAt(
++e.position),ue(l)||_(e,"a whitespace character is expected after the key-value separator within a block mapping"),a||(e.events.splice(p.eventsLength,0,{type:L.
MAPPING,start:p.position,anchorStart:r.anchorStart,anchorEnd:r.anchorEnd,tagStart:r.tagStart,tagEnd:r.tagEnd,style:_e.BLOCK}),a=!0),o=!0,i=!1,c=!1;else if(o)_(e,
"expected ':' after a mapping key");else return r.anchorStart!==E||r.tagStart!==E?(Ne(e,p),!1):!0}else if(o)_(e,"can not read a block mapping entry; a multiline\
 key may not be an implicit key");else return r.anchorStart!==E||r.tagStart!==E?(Ne(e,p),!1):!0}if(Oe(e,n,hn,!0,c)&&(c=!1),i||c&&(H(e),c=!1),U(e,!0),l=e.input.charCodeAt(
e.position),(e.line===u||e.lineIndent>n)&&l!==0)_(e,"bad indentation of a mapping entry");else if(e.lineIndent<n)break}return o?(i&&H(e),a&&xe(e),!0):!1}function Oe(e,n,t,r,i,o=!0){
e.depth>=e.maxDepth&&_(e,`nesting exceeded maxDepth (${e.maxDepth})`),e.depth++;let a=1,c=!1,l=!1,f=null,u=Yr(),p=t===hn||t===li,m=p,d=p;if(r&&U(e,!0)&&(c=!0,e.
lineIndent>n?a=1:e.lineIndent===n?a=0:a=-1),a===1)for(;;){let g=e.input.charCodeAt(e.position),b=Ce(e);if(c&&a!==1&&(g===33||g===38))break;if(c&&d&&(u.tagStart!==
E||u.anchorStart!==E)&&(g===33||g===38)){let h=Ce(e),v=n+1;if(Xn(e,e.position-e.lineStart,v,u)&&e.events[h.eventsLength]?.type===L.MAPPING)return e.depth--,!0;Ne(
e,h)}if(c&&(g===33&&u.tagStart!==E||g===38&&u.anchorStart!==E)||!Aa(e,u,t===Ie)&&!ka(e,u))break;f===null&&(f=b),U(e,!0)?(c=!0,m=d,e.lineIndent>n?a=1:e.lineIndent===
n?a=0:a=-1):m=!1}if(m&&(m=c||i),a===1||t===hn){let g=t===Ie||t===ci?n:n+1,b=e.position-e.lineStart;if(a===1)if(m&&(zr(e,b,u)||Xn(e,b,g,u))||Oa(e,g,u))l=!0;else{
let h=e.input.charCodeAt(e.position);if(f!==null&&o&&d&&!m&&h!==124&&h!==62){let v=Ce(e),w=f.position-f.lineStart;Ne(e,f),Xn(e,w,g,Yr())&&e.events[v.eventsLength]?.
type===L.MAPPING?l=!0:Ne(e,v)}!l&&(p&&Na(e,g,u)||xa(e,g,u)||Ca(e,g,u)||Ea(e,u)||La(e,g,t,u))&&(l=!0)}else a===0&&(l=m&&zr(e,b,u))}return p=p&&!l,!l&&(u.anchorStart!==
E||u.tagStart!==E||p)&&(Pe(e,E,E,u.anchorStart,u.anchorEnd,u.tagStart,u.tagEnd,A.PLAIN),l=!0),e.depth--,l||u.anchorStart!==E||u.tagStart!==E}function Pa(e){if(e.
lineIndent>0||e.input.charCodeAt(e.position)!==37)return!1;e.position++;let n=e.position;for(;e.input.charCodeAt(e.position)!==0&&!te(e.input.charCodeAt(e.position));)
e.position++;let t=e.input.slice(n,e.position),r=[];for(t.length===0&&_(e,"directive name must not be less than one character in length");e.input.charCodeAt(e.position)!==
0&&!M(e.input.charCodeAt(e.position));){for(;Re(e.input.charCodeAt(e.position));)e.position++;if(e.input.charCodeAt(e.position)===35||M(e.input.charCodeAt(e.position))||
e.input.charCodeAt(e.position)===0)break;let i=e.position;for(;e.input.charCodeAt(e.position)!==0&&!te(e.input.charCodeAt(e.position));)e.position++;r.push(e.input.
slice(i,e.position))}if(M(e.input.charCodeAt(e.position))&&_n(e),t==="YAML"){e.directives.some(o=>o.kind==="yaml")&&_(e,"duplication of %YAML directive"),r.length!==
1&&_(e,"YAML directive accepts exactly one argument");let i=/^([0-9]+)\.([0-9]+)$/.exec(r[0]);i===null&&_(e,"ill-formed argument of the YAML directive"),parseInt(
i[1],10)!==1&&_(e,"unacceptable YAML version of the document"),e.directives.push({kind:"yaml",version:r[0]})}else if(t==="TAG"){r.length!==2&&_(e,"TAG directive\
 accepts exactly two arguments");let[i,o]=r;ui.test(i)||_(e,"ill-formed tag handle (first argument) of the TAG directive"),ai.call(e.tagHandlers,i)&&_(e,`there \
is a previously declared suffix for "${i}" tag handle`),_a.test(o)||_(e,"ill-formed tag prefix (second argument) of the TAG directive"),e.tagHandlers[i]=o,e.directives.
push({kind:"tag",handle:i,prefix:o})}return!0}function Ra(e){e.directives=[],e.tagHandlers=Object.create(null);let n=!1;for(U(e,!0);Pa(e);)n=!0,U(e,!0);let t=!1,
r=!1,i=!0;if(e.lineIndent===0&&e.input.charCodeAt(e.position)===45&&e.input.charCodeAt(e.position+1)===45&&e.input.charCodeAt(e.position+2)===45&&ue(e.input.charCodeAt(
e.position+3))){t=!0;let c=e.line;e.position+=3,U(e,!0),i=e.line>c}else n&&_(e,"directives end mark is expected");let o=e.events.length;if(!t&&e.position===e.lineStart&&
e.input.charCodeAt(e.position)===46&&Le(e)){e.position+=3,U(e,!0);return}if(ba(e,t,!1),Oe(e,e.lineIndent-1,hn,!1,i,i)||H(e),U(e,!0),e.position===e.lineStart&&Le(
e)&&(r=e.input.charCodeAt(e.position)===46,r)){let c=e.line;e.position+=3,U(e,!0),e.line===c&&e.position<e.length&&_(e,"end of the stream or a document separato\
r is expected")}let a=e.events[o];a?.type===L.DOCUMENT&&(a.explicitEnd=r),xe(e),!r&&e.position<e.length&&!lt(e)&&_(e,"end of the stream or a document separator \
is expected")}function $a(e,n){let t=e.length,r={...ct,...n,input:`${e}\0`,length:t,position:0,line:0,lineStart:0,lineIndent:0,firstTabInLine:-1,depth:0,directives:[],
tagHandlers:Object.create(null),events:[]},i=e.indexOf("\0");for(i!==-1&&je.throwAt(e,i,"null byte is not allowed in input",r.filename);r.position<r.length&&(mi(
r),U(r,!0),!(r.position>=r.length));){let o=r.position;Ra(r),r.position===o&&_(r,"can not read a document")}return r.events}var Ma={...ct,...at};function Fa(e,n={}){
let t={...Ma,...n},r=String(e),i=Object.keys(ct),o=Object.keys(at);return da($a(r,Br(t,i)),{...Br(t,o),source:r})}function hi(e,n,t){let r=null;typeof n=="funct\
ion"?r=n:n!==null&&typeof n=="object"&&(t=n);let i=Fa(e,t);if(r===null)return i;for(let o of i)r(o)}function Sn(e,n){return(e&1<<n)!==0}var Xr={applyQuoteFlowKeysOption:Da,doubleQuoteForInvisibles:Ba,doubleQuoteWhitespaceOnly:Ua,applyForceQuotesOption:Ga,tryLongOrMultilineAsBlock:qa,
quoteInvalidPlain:Ka,fallbackToDoubleQuoted:ja};function _i(e){return e.presenterOptions.quoteStyle==="single"&&Sn(e.allowedStylesMask,A.SINGLE_QUOTED)?A.SINGLE_QUOTED:
A.DOUBLE_QUOTED}function Da(e){e.presenterOptions.quoteFlowKeys&&(!e.isKey||!e.flowOnly||e.style!==A.PLAIN||(e.style=A.DOUBLE_QUOTED))}function Ba(e){e.style===
A.PLAIN&&/[\t\x7F-\xA0\u2028\u2029\uFEFF\uFFFE\uFFFF]/.test(e.node.value)&&(e.style=A.DOUBLE_QUOTED)}function Ua(e){e.style===A.PLAIN&&/^\s+$/.test(e.node.value)&&
(e.style=A.DOUBLE_QUOTED)}function Ga(e){e.presenterOptions.forceQuotes&&(e.isKey||e.style!==A.PLAIN||e.node.tag===e.presenterOptions.schema.defaultScalarTag.tagName&&
(e.style=e.node.value.includes(`
`)?A.DOUBLE_QUOTED:_i(e)))}function qa(e){if(e.style!==A.PLAIN||e.isKey)return;let n=e.node.value,t=n.indexOf(`
`)!==-1;if(!Sn(e.allowedStylesMask,A.LITERAL_BLOCK)){t&&(e.style=A.DOUBLE_QUOTED);return}let r=e.presenterOptions.lineWidth;if(r===-1){t&&(e.style=A.LITERAL_BLOCK);
return}let i=Math.max(Math.min(r,40),r-e.shiftOfContent),o=0,a=!1;for(;o<=n.length;){let c=n.length,l=n.indexOf(`
`,o);l!==-1&&(c=l);let f=n.slice(o,c);if(f.length>i&&f[0]!==" "&&/ [^ \t]/.test(f)&&(a=!0),l===-1)break;o=l+1}a?e.style=A.FOLDED_BLOCK:t&&(e.style=A.LITERAL_BLOCK)}
function Ka(e){e.style===A.PLAIN&&!Sn(e.allowedStylesMask,A.PLAIN)&&(e.style=_i(e))}function ja(e){Sn(e.allowedStylesMask,e.style)||(e.style=A.DOUBLE_QUOTED)}var Wa="[\\x09\\x0A\\x0D\\x20-\\x7E\\x85\\xA0-\\uD7FF\\uE000-\\uFFFD\\u{10000}-\\u{10FFFF}]",Ha="[\\n\\r]",Qa="\\uFEFF",ut="[ \\t]",bi=`(?:(?!(?:${Ha}|${Qa}))${Wa}\
)`,wn=`(?:(?!${ut})${bi})`,yi="[\\x09\\x20-\\uD7FF\\uE000-\\uFFFF\\u{10000}-\\u{10FFFF}]",vi="[-?:,\\[\\]{}#&*!|>'\"%@`]",Ya="[,\\[\\]{}]",tt=wn,rt=`(?:(?!${Ya}\
)${wn})`,Va=`(?:(?:(?!${vi})${wn})|[?:-](?=${tt}))`,za=`(?:(?:(?!${vi})${wn})|[?:-](?=${rt}))`,Si=`(?:(?:(?![:#])${tt})|:(?=${tt}))#*`,wi=`(?:(?:(?![:#])${rt})|\
:(?=${rt}))#*`,Ti=`(?:${ut}*${Si})*`,Ai=`(?:${ut}*${wi})*`,ki=`${Va}#*${Ti}`,Ei=`${za}#*${Ai}`,Xa=ki,Ja=Ei,Za=`\\n+${Si}${Ti}`,ec=`\\n+${wi}${Ai}`,nc=`${ki}(?:${Za}\
)*`,tc=`${Ei}(?:${ec})*`,lu=new RegExp(`^(?:${nc})$`,"u"),uu=new RegExp(`^(?:${tc})$`,"u"),fu=new RegExp(`^(?:${Xa})$`,"u"),du=new RegExp(`^(?:${Ja})$`,"u"),pu=new RegExp(
`^(?:${yi})*$`,"u"),mu=new RegExp(`^(?:${yi}|\\n)*$`,"u"),gu=new RegExp(`^(?:${bi}|\\n)*$`,"u");var rc={indent:2,seqNoIndent:!1,seqInlineFirst:!0,lineWidth:80,flowBracketPadding:!1,flowSkipCommaSpace:!1,flowSkipColonSpace:!1,quoteFlowKeys:!1,quoteStyle:"si\
ngle",forceQuotes:!1,scalarStyleRules:Object.keys(Xr).map(e=>Reflect.get(Xr,e)),tagBeforeAnchor:!1};var hu={...rc,schema:Ys,skipInvalid:!1,noRefs:!1,flowLevel:-1,sortKeys:!1,transform:()=>{}};var _u=L.DOCUMENT,bu=L.SEQUENCE,yu=L.MAPPING,vu=L.SCALAR,Su=L.ALIAS,wu=L.POP,Tu=A.PLAIN,Au=A.SINGLE_QUOTED,ku=A.DOUBLE_QUOTED,Eu=A.LITERAL_BLOCK,xu=A.FOLDED_BLOCK,
Cu=_e.BLOCK,Nu=_e.FLOW,Iu=X.CLIP,Lu=X.STRIP,Ou=X.KEEP;var ic=1e6;function xi(e){if(e.length>ic)throw new Error("the manifests must have at most 1 MB");let n=[];for(let t of hi(e))if(t!=null){if(typeof t!="object"||
Array.isArray(t))throw new Error("a manifest must be an object");n.push(t)}if(!n.length)throw new Error("there is no manifest");return n}function Ci(e){for(let n of e){
let t=n.metadata?.namespace;if(typeof t=="string"&&t)return t}return""}var oc=100;function Ni(){let e=j(),n=O(e.gangs),t=x(()=>[...new Set(n.items.map(h=>h.metadata.namespace??""))].sort(),[n.items]),[r,i]=N(""),[o,a]=N(""),[c,l]=N(
!1),[f,u]=N(""),[p,m]=N(),d=ce(void 0),g=async()=>{d.current?.abort();let h=d.current=new AbortController;u(""),m(void 0),l(!0);try{let v=xi(r),w=await e.api.fit(
o||Ci(v)||"default",v,h.signal);h.signal.aborted||m(w)}catch(v){h.signal.aborted||u(v instanceof Error?v.message:String(v))}finally{h.signal.aborted||l(!1)}},b=async h=>{
let v=await Promise.all([...h??[]].map(w=>w.text()));v.length&&i(v.join(`
---
`))};return s(T,{children:[s(Q,{of:[n],children:"What if"}),s("p",{children:"Would the gangs of these manifests fit now? Nothing is created."}),s("form",{onSubmit:h=>{
h.preventDefault(),g()},onDragOver:h=>h.preventDefault(),onDrop:h=>{h.preventDefault(),b(h.dataTransfer?.files)},children:[s("label",{for:"manifests",children:"\
Manifests (YAML or JSON; paste or drop files)"}),s("textarea",{id:"manifests",rows:16,spellcheck:!1,value:r,onInput:h=>i(h.currentTarget.value),onKeyDown:h=>{h.
key==="Enter"&&h.ctrlKey&&g()}}),s("div",{class:"filters",children:[s("label",{children:["Namespace ",s("input",{list:"namespaces",value:o,placeholder:"of the m\
anifests",onInput:h=>a(h.currentTarget.value)})]}),s("datalist",{id:"namespaces",children:t.map(h=>s("option",{value:h},h))}),s("label",{class:"file",children:[
"File ",s("input",{type:"file",multiple:!0,accept:".yaml,.yml,.json",onChange:h=>{b(h.currentTarget.files)}})]}),s("button",{type:"submit",disabled:c||!r.trim(),
children:c?"Asking \u2026":"Does it fit?"})]})]}),s("div",{"aria-live":"polite",children:[f&&s("p",{class:"error",children:f}),p?.status&&s(sc,{gangs:p.status.gangs??
[]})]})]})}function sc({gangs:e}){return s(T,{children:e.map(n=>s(ac,{fit:n},n.name))})}function ac({fit:e}){let[n,t]=e.fits?["fits now","good"]:e.refused?["ref\
used","bad"]:e.ever?["does not fit now","wait"]:["can never fit","bad"],r=e.placement??[];return s("section",{children:[s("h2",{children:[e.name," ",s("span",{class:`\
badge ${t}`,children:n})]}),s("p",{children:[e.members," members. ",e.message]}),e.displaces&&s("p",{children:[e.displaces.members," pods would be evicted for i\
t (",e.displaces.action,"): ",s(ge,{named:e.displaces.gangs})]}),r.length>0&&s(z,{label:`Placement of ${e.name}`,children:s("table",{children:[s("thead",{children:s(
"tr",{children:[s("th",{scope:"col",children:"Node"}),s("th",{scope:"col",class:"number",children:"Members"})]})}),s("tbody",{children:r.slice(0,oc).map(i=>s("t\
r",{children:[s("th",{scope:"row",children:i.node}),s("td",{class:"number",children:i.members})]},i.node))})]})})]})}var We="tutti.token",ft=[{page:"overview",title:"Overview",view:kr},{page:"queues",title:"Queues",view:Cr},{page:"gangs",title:"Gangs",view:_r},{page:"map",title:"\
Map",view:Ar},{page:"timeline",title:"Timeline",view:Fr},{page:"what-if",title:"What if",view:Ni}];function cc(){let[e,n]=N(()=>sessionStorage.getItem(We)??""),
[t,r]=N({at:e?"in":"unknown"}),[i,o]=N(),a=x(()=>{let f=u=>{if(!e)return o(u);u&&(sessionStorage.removeItem(We),r({at:"token form",message:"The token was refuse\
d."}))};return new ln(new rn(e,f))},[e]);q(()=>()=>a.stop(),[a]),q(()=>{t.at==="unknown"&&a.api.check().then(()=>r({at:"in"}),f=>{let u=f instanceof Y?f.noUser:
void 0;r(u==="token wanted"?{at:"token form",message:""}:u?{at:"no user",why:u}:{at:"no answer",message:f.message})})},[a,t]);let c=f=>{sessionStorage.setItem(We,
f),n(f),r({at:"in"})},l=()=>{sessionStorage.removeItem(We),n(""),r({at:"token form",message:""})};switch(t.at){case"unknown":return s("main",{class:"login",children:"\
Connecting \u2026"});case"token form":return s(Kt,{onToken:c,message:t.message});case"no answer":return s(Wt,{message:t.message});case"no user":return s(jt,{why:t.
why});case"in":return s(Bn.Provider,{value:a,children:s(lc,{onLogOut:e?l:void 0,ended:i})})}}function lc({onLogOut:e,ended:n}){let t=sr(),r=ft.find(p=>p.page===
t.page)??ft[0],i=t.page==="gangs"&&t.parts.length===2,o=i?lr:r.view,a=ce(null),c=[t.page,...t.parts].join("/"),l=ce(!0);q(()=>{document.title=`${i?t.parts[1]:r.
title} \u2013 Tutti`,!l.current&&document.activeElement?.tagName!=="INPUT"&&a.current?.focus(),l.current=!1},[c]);let f=p=>{let m=Ae(location.hash);m.page==="ga\
ngs"&&!m.parts.length?F("search",p):location.hash=`${V("gangs")}?${new URLSearchParams({search:p})}`},u=t.page==="gangs"&&!i?t.query.get("search")??"":"";return s(
T,{children:[s("a",{class:"skip",href:"#main",onClick:p=>{p.preventDefault(),a.current?.focus()},children:"Skip to content"}),s("header",{children:[s("strong",{
class:"brand",children:"Tutti"}),s("nav",{"aria-label":"Pages",children:ft.map(({page:p,title:m})=>s("a",{href:V(p),"aria-current":r.page===p?"page":void 0,children:m},
p))}),s(ar,{value:u,onSearch:f}),s(cr,{}),e&&s("button",{type:"button",onClick:e,children:"Log out"})]}),s("main",{id:"main",tabIndex:-1,ref:a,children:[n&&s(Ht,
{why:n}),s(o,{route:t},i?c:r.page)]})]})}function uc(){let e=new URLSearchParams(location.hash.slice(1)).get("token");e&&(sessionStorage.setItem(We,e),history.replaceState(
null,"",location.pathname))}qt();uc();addEventListener("hashchange",()=>{location.hash.startsWith("#token=")&&location.reload()});kt(s(cc,{}),document.getElementById(
"app"));
